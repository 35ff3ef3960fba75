"""Airflow's own form behind the Trigger button of a DAG, as a person sees and uses it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bin.lib.local.browser import Browser
from tests.airflow.e2e.world import SECONDS

DIALOG = "[role=dialog][data-scope=dialog][data-state=open]"
TRIGGER = f"{DIALOG} [data-testid=trigger-dag-submit]"
_FIELDS = f"""[...document.querySelectorAll('{DIALOG} [data-scope=field][data-part=root]')].map(row => {{
    const input = row.querySelector('[name^=element_]'), number = row.querySelector('[role=spinbutton]');
    const said = part => (one => one ? one.textContent.trim() : '')(row.querySelector(`[data-part=${{part}}]`));
    const limit = name => number && number.hasAttribute(name) ? Number(number.getAttribute(name)) : null;
    return input && {{
        name: input.name.replace('element_', ''), title: said('label').replace(/ *\\*$/, ''), says: said('helper-text'),
        minimum: limit('aria-valuemin'), maximum: limit('aria-valuemax'),
        value: input.type === 'checkbox' ? input.checked : input.value,
    }};
}}).filter(Boolean)"""


@dataclass(frozen=True)
class Field:
    """One row of the form."""

    name: str
    title: str
    says: str
    minimum: float | None
    maximum: float | None
    value: Any


class TriggerForm:
    """The form of one DAG at a time, in one tab."""

    def __init__(self, tab: Browser, address: str) -> None:
        self._tab = tab
        self._address = address

    def open(self, dag: str) -> None:
        """By the button of the DAG's page."""
        self._tab.open(f"{self._address}/dags/{dag}")
        self._tab.press("button", "Trigger", 60)
        self._tab.wait(f"!!document.querySelector('{TRIGGER}')")

    def fields(self, count: int) -> list[Field]:
        """What can be filled in, from top to bottom, once there are so many."""
        self._tab.wait(f"{_FIELDS}.length === {count}")
        return [Field(**one) for one in self._tab.evaluate(_FIELDS)]

    def choices(self, name: str) -> list[str]:
        """What a field offers; its list is left open."""
        self._tab.press(f"{DIALOG} #element_{name}")
        offered = f"[...document.querySelectorAll('{DIALOG} [role=option]')].map(one => one.textContent)"
        return list(self._tab.wait(f"(all => all.length && all)({offered})"))

    def choose(self, choice: str) -> None:
        """Of the list that is open."""
        self._tab.press(f"{DIALOG} [role=option]", choice)

    def enter(self, name: str, text: str) -> None:
        """Types over what a field has, and leaves it."""
        self._tab.press(f"{DIALOG} input[name=element_{name}]")
        self._tab.evaluate("document.activeElement.select()")
        self._tab.type(text)
        self.leave()

    def leave(self) -> None:
        """Clicks where nothing is."""
        self._tab.press(f"{DIALOG} h2")

    def has(self, name: str, value: str) -> None:
        """Waits until the field has this value."""
        wanted = f"one => one.name === {json.dumps(name)} && one.value === {json.dumps(value)}"
        self._tab.wait(f"{_FIELDS}.some({wanted})")

    def is_complete(self) -> bool:
        """Whether the form lets a person trigger."""
        return not self._tab.evaluate(f"document.querySelector('{TRIGGER}').disabled")

    def trigger(self) -> None:
        self._tab.press(TRIGGER)

    def refuses(self, why: str) -> None:
        """Waits until the form says so; it stays open."""
        self._tab.wait(f"document.querySelector('{DIALOG}').textContent.includes({json.dumps(why)})")

    def started(self, dag: str) -> str:
        """The run whose page Airflow shows after the form is gone, once it has asked anew for all that it shows."""
        beginning = f"/dags/{dag}/runs/"
        script = f"location.pathname.startsWith('{beginning}') && !document.querySelector('{DIALOG}')"
        return str(self._tab.wait(f"{script} && decodeURIComponent(location.pathname.split('/')[4])", SECONDS))

    def pictures(self, folder: Path, name: str) -> None:
        """How it looks, light and dark."""
        for theme in ("dark", "light"):
            self._tab.evaluate(f"document.documentElement.className = '{theme}'")
            self._tab.screenshot(folder / f"{name}-{theme}.png", whole=False)
