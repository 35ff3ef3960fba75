// The theme before anything is painted; then times, filters, refresh, Airflow's own pages, and actions.
"use strict";
(() => {
  const above = (() => { try { return window.parent !== window && window.parent.document ? window.parent : null; } catch { return null; } })();
  const root = document.documentElement;
  root.classList.add("scripted");

  const paint = () => {
    const theirs = above?.document.documentElement.classList;
    for (const name of ["light", "dark"]) root.classList.toggle(name, Boolean(theirs?.contains(name)));
  };
  paint();
  if (above) new MutationObserver(paint).observe(above.document.documentElement, { attributes: true, attributeFilter: ["class"] });

  const REFRESH = 15_000, POLL = 2_000;
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  const short = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

  const tellTimes = () => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const seconds = (at - Date.now()) / 1000, unit = units.find(([, size]) => Math.abs(seconds) >= size);
      const far = Math.abs(seconds) > 7 * 86400;
      time.textContent = far ? short.format(at) : unit ? relative.format(Math.round(seconds / unit[1]), unit[0]) : "just now";
      time.title = `${exact.format(at)} (${time.dateTime})`;
    }
  };

  // Only what is new is put in place, so that place, focus and what is being typed stay as they are.
  const swap = async (address) => {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    if (!answer.ok && answer.status !== 404) throw new Error(`${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (!next || part.contains(document.activeElement) && part.querySelector("input, select, textarea") !== null) continue;
      if (part.dataset.source === next.innerHTML) continue;
      const source = next.innerHTML, focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      part.replaceChildren(...next.childNodes);
      part.dataset.source = source;
      if (focused) [...part.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    }
    tellTimes();
  };

  const refresh = async () => {
    const status = document.querySelector(".fresh");
    if (document.hidden || document.querySelector("dialog[open]") || !document.querySelector("[data-live]")) return;
    try {
      await swap(location.href);
      status.textContent = "";
    } catch {
      status.textContent = "Not refreshed: Airflow does not answer. Trying again.";
    }
  };

  const filter = (form) => {
    let waiting;
    const go = async () => {
      const usual = (name) => form.elements[name].selectedIndex === 0;
      const chosen = new URLSearchParams([...new FormData(form)].filter(([name, value]) => value !== "" && !usual(name)));
      const address = `${location.pathname}${chosen.size ? `?${chosen}` : ""}`;
      history.replaceState(null, "", address);
      try { await swap(address); } catch { location.assign(address); }
    };
    form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(go, 200); });
    form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); go(); });
  };

  // The frame may not lead its parent away by itself, but the parent's own router may be asked.
  const toAirflow = (path) => {
    if (!above) { location.assign(airflow() + path); return; }
    above.history.pushState(null, "", airflow() + path);
    above.dispatchEvent(new above.PopStateEvent("popstate", { state: null }));
  };
  const airflow = () => document.body.dataset.airflow;

  const api = async (method, path, body) => {
    const answer = await fetch(`${airflow()}/api/v2${path}`, {
      method, credentials: "same-origin",
      headers: { Accept: "application/json", ...(body ? { "Content-Type": "application/json" } : {}) },
      body: body ? JSON.stringify(body) : undefined,
    });
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) {
      const detail = typeof said.detail === "string" ? said.detail : JSON.stringify(said.detail ?? "");
      const text = answer.status === 403 ? "Airflow does not let you do this." : answer.status === 401 ? "You are signed out. Sign in to Airflow again." : answer.status === 404 ? "Airflow does not know this DAG (yet)." : `Airflow refused (${answer.status}): ${detail}`;
      throw Object.assign(new Error(text), { status: answer.status });
    }
    return said;
  };

  const make = (tag, facts = {}, ...inside) => {
    const element = Object.assign(document.createElement(tag), facts);
    element.append(...inside.filter((one) => one !== null && one !== undefined));
    return element;
  };

  const link = (path, text) => {
    const anchor = make("a", { href: airflow() + path }, text);
    anchor.addEventListener("click", (event) => { event.preventDefault(); toAirflow(path); });
    return anchor;
  };

  const field = (one) => {
    const input = make("input", { name: one.name, required: one.required });
    if (one.kind === "boolean") {
      input.type = "checkbox"; input.checked = one.value === true;
      return make("label", { className: "check" }, input, one.label);
    }
    input.type = one.kind === "integer" ? "number" : "text";
    if (one.name === "reason") { input.minLength = 3; input.maxLength = 1000; }
    if (one.value !== null) input.value = one.value;
    return make("label", {}, one.label, input);
  };

  const runPath = (dag, run) => `/dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run)}`;
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

  const follow = async (dag, run, tell, answered = false) => {
    for (;;) {
      const found = await api("GET", `/dags/${encodeURIComponent(dag)}/dagRuns/${encodeURIComponent(run)}`);
      const tasks = (await api("GET", `/dags/${encodeURIComponent(dag)}/dagRuns/${encodeURIComponent(run)}/taskInstances`)).task_instances;
      const asks = !answered && tasks.some((task) => task.state === "awaiting_input" || task.state === "deferred" && task.task_id === "approve");
      if (["success", "failed"].includes(found.state) || asks) return { state: asks ? "asks" : found.state, note: found.note };
      const done = tasks.filter((task) => ["success", "failed", "skipped", "upstream_failed"].includes(task.state)).length;
      const now = tasks.find((task) => task.state === "running");
      tell(now ? `${now.task_id} is running, ${done} of ${tasks.length} tasks done.` : `The run is ${found.state}, ${done} of ${tasks.length} tasks done.`);
      await sleep(POLL);
    }
  };

  const open = async (action, opener) => {
    const progress = make("p", { className: "progress", role: "status" });
    const start = make("button", { type: "submit", className: "main" }, action.label);
    const close = make("button", { type: "button" }, "Cancel");
    const title = make("h2", { id: "dialog-title" }, action.label);
    const form = make("form", { method: "dialog" }, title, make("p", {}, action.says), ...action.fields.map(field));
    const wake = make("label", { className: "check", hidden: true }, make("input", { type: "checkbox", name: "unpause", checked: true }), make("span"));
    form.append(wake, make("p", { className: "soft" }, `This is a run of ${action.dag_id}, as you.`), progress, make("div", { className: "buttons" }, close, start));
    const dialog = make("dialog", {}, form);
    dialog.setAttribute("aria-labelledby", "dialog-title");
    document.body.append(dialog);
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => { dialog.remove(); opener.focus(); refresh(); approvals(); });
    dialog.showModal();
    let asleep = [];
    const dag = (id) => `/dags/${encodeURIComponent(id)}`;
    start.disabled = true;
    const tell = (text, tone = "", ...more) => { progress.className = `progress ${tone}`; progress.replaceChildren(text, ...more.flatMap((one) => [" ", one])); };
    const look = async () => {
      while (dialog.open) {
        try {
          const found = await Promise.all([action.dag_id, ...action.wakes].map((id) => api("GET", dag(id))));
          asleep = found.filter((one) => one.is_paused).map((one) => one.dag_id);
          wake.hidden = !asleep.length;
          wake.lastChild.textContent = `${asleep.join(" and ")} ${asleep.length > 1 ? "are" : "is"} paused in Airflow: switch on, or the run waits.`;
          tell("");
          start.disabled = false;
          return;
        } catch (error) {
          const final = [401, 403].includes(error.status);
          tell(final ? error.message : `${error.message} Trying again.`, "bad");
          if (final) return;
          await sleep(POLL);
        }
      }
    };
    look();
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      start.disabled = true;
      const conf = { ...action.conf };
      let there = null;
      for (const one of action.fields) {
        const input = form.elements[one.name];
        if (one.kind === "boolean") conf[one.name] = input.checked;
        else if (input.value !== "") conf[one.name] = one.kind === "integer" ? Number(input.value) : input.value;
      }
      try {
        if (form.elements.unpause.checked) for (const id of asleep) await api("PATCH", `${dag(id)}?update_mask=is_paused`, { is_paused: false });
        const run = (await api("POST", `${dag(action.dag_id)}/dagRuns`, { logical_date: null, conf })).dag_run_id;
        there = link(runPath(action.dag_id, run), "Open the run");
        close.textContent = "Close";
        tell("The run is queued.", "", there);
        const ended = await follow(action.dag_id, run, (text) => tell(text, "", there));
        if (ended.state === "asks") tell("It has shown what would change and waits for approval: close this and decide.", "good", there);
        else tell(ended.state === "success" ? ended.note || "Done." : ended.note || "The run failed.", ended.state === "success" ? "good" : "bad", there);
      } catch (error) {
        if (there) tell(`${error.message} The run goes on.`, "bad", there);
        else { tell(error.message, "bad"); start.disabled = false; }
      }
    });
  };

  const approvals = async () => {
    const place = document.querySelector("[data-approvals]");
    if (!place || place.querySelector("button:disabled")) return;
    const dag = place.dataset.approvals;
    let found;
    try {
      found = (await api("GET", `/dags/${encodeURIComponent(dag)}/dagRuns/~/hitlDetails?response_received=false&limit=5`)).hitl_details;
    } catch { return; }
    const waiting = found.filter((one) => ["awaiting_input", "deferred"].includes(one.task_instance.state));
    place.hidden = !waiting.length;
    place.replaceChildren(...waiting.map((one) => {
      const task = one.task_instance, said = make("p", { className: "progress", role: "status" });
      const lines = (one.body ?? "").split("\n").filter((line) => line.trim() && !line.includes("]("));
      const decide = async (choice) => {
        for (const button of buttons) button.disabled = true;
        try {
          await api("PATCH", `/dags/${encodeURIComponent(dag)}/dagRuns/${encodeURIComponent(task.dag_run_id)}/taskInstances/${encodeURIComponent(task.task_id)}/${task.map_index}/hitlDetails`, { chosen_options: [choice], params_input: {} });
          said.textContent = choice === "Approve" ? "Approved. The repair is under way." : "Rejected. Nothing was changed.";
          if (choice === "Approve") await follow(dag, task.dag_run_id, (text) => { said.textContent = text; }, true).then((ended) => { said.textContent = ended.note || `The run ended: ${ended.state}.`; });
          refresh();
        } catch (error) {
          said.textContent = error.message;
          for (const button of buttons) button.disabled = false;
        }
      };
      const buttons = one.options.map((option) => make("button", { type: "button", className: option === "Approve" ? "main" : "", onclick: () => decide(option) }, option));
      return make("div", { className: "notice warn" }, make("b", {}, one.subject), make("pre", {}, lines.join("\n")), make("div", { className: "actions" }, ...buttons, link(runPath(dag, task.dag_run_id), "Open the run")), said);
    }));
  };

  // At once: a button can be pressed as soon as it is there.
  document.addEventListener("click", (event) => {
    const away = event.target.closest("a[data-airflow]");
    if (away && above && !event.ctrlKey && !event.metaKey) { event.preventDefault(); toAirflow(away.dataset.airflow); }
    const cell = event.target.closest("rect[data-first]");
    if (cell) location.assign(`${location.pathname}?first=${cell.dataset.first}&last=${cell.dataset.last}#h-txids`);
    const button = event.target.closest("button[data-action]");
    if (button && !button.disabled) open(JSON.parse(button.dataset.action), button);
  });

  document.addEventListener("DOMContentLoaded", () => {
    tellTimes();
    for (const part of document.querySelectorAll("[data-live]")) part.dataset.source = "";
    for (const form of document.querySelectorAll("form[data-instant]")) filter(form);
    for (const form of document.querySelectorAll("form[data-submit]")) form.addEventListener("change", () => { if (form.reportValidity()) form.submit(); });
    approvals();
    let turn = 0;
    setInterval(() => { if (++turn % 3 === 0 || document.querySelector("[data-streaming]")) refresh(); }, REFRESH / 3);
    document.addEventListener("visibilitychange", refresh);
    setInterval(approvals, REFRESH);
  });
})();
