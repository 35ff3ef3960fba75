"""The trigger forms of a booted Airflow, in Chromium: what a person is asked, is refused, and starts by clicks only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bin.lib.local.browser import browser
from tests.airflow.definitions import ROOT
from tests.airflow.e2e.trigger_form import TriggerForm
from tests.airflow.e2e.world import World
from twinstream_airflow.pausing import paused, resume

pytestmark = pytest.mark.timeout(600)
PICTURES = ROOT / "build" / "screenshots" / "forms"
NAME = "streamed"
FORMS = {
    f"{NAME}__microbatch": ["Txids at most", "Records per txid"],
    f"{NAME}__continuous": ["Look every", "End after (seconds)", "Drain and end"],
    f"{NAME}__recompute": ["Frontier"],
    f"{NAME}__reconcile": ["Frontier", "Recompute in any case"],
    f"{NAME}__repair": ["Frontier", "Dry run", "Whatever the cause"],
    f"{NAME}__replay": ["Promote", "Reason"],
    f"{NAME}__control": ["Action", "Reason", "Txid", "File", "Hand over to"],
    "twinstream__maintenance": ["Pipelines", "Backups to keep"],
    "twinstream__freshness": [],
}
PAUSE = "pause: nothing runs until it is resumed"


@pytest.fixture(scope="module")
def form(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TriggerForm]:
    world.rest.wait_for_dags(set(FORMS))
    with browser(tmp_path_factory.mktemp("forms")) as tab:
        tab.look(1280, 1100)
        tab.sign_in(world.airflow.address, world.airflow.password)
        yield TriggerForm(tab, world.airflow.address)


def test_every_form_asks_for_what_its_dag_takes_and_says_what_it_is_for(world: World, form: TriggerForm) -> None:
    for dag, titles in FORMS.items():
        params = world.rest.call("GET", f"/dags/{dag}/details")["params"]
        form.open(dag)
        shown = form.fields(len(titles))
        form.pictures(PICTURES, dag.replace(f"{NAME}__", ""))
        assert [field.title for field in shown] == titles
        assert [field.name for field in shown] == list(params)
        for field in shown:
            schema = params[field.name]["schema"]
            assert len(field.says) > 20, (dag, field)
            assert field.says == params[field.name]["description"]
            assert (field.minimum, field.maximum) == (schema.get("minimum"), schema.get("maximum"))
            if "integer" in schema["type"]:
                assert field.minimum == 1 < (field.maximum or 0), (dag, field)
                form.enter(field.name, "0")
                form.has(field.name, "1")
            if offered := choices(schema):
                assert form.choices(field.name) == offered
                form.leave()


def choices(schema: dict[str, Any]) -> list[str]:
    """What a list shows for the values that the schema allows."""
    values = schema.get("enum") or schema.get("items", {}).get("enum") or []
    shown = schema.get("values_display", {})
    return [shown.get("null" if value is None else value, value) for value in values]


def test_a_run_is_refused_until_the_form_is_right_then_started_by_clicks_only(world: World, form: TriggerForm) -> None:
    dag = f"{NAME}__control"
    before = len(world.rest.runs(dag))
    form.open(dag)
    form.fields(5)
    form.enter("reason", "x")
    form.has("reason", "x")
    assert not form.is_complete(), "a person chooses the action, none is set beforehand"
    assert PAUSE in form.choices("action")
    form.choose(PAUSE)
    form.has("action", "pause")
    form.trigger()
    form.refuses("'x' is too short")
    assert len(world.rest.runs(dag)) == before

    form.enter("reason", "the source is being moved")
    form.has("reason", "the source is being moved")
    form.trigger()
    run = form.started(dag)
    assert world.ended(dag, run) == "success", world.log(dag, run, "decide")
    found = world.rest.run(dag, run)
    typed = {"action": "pause", "reason": "the source is being moved", "txid": None, "file": None, "to": None}
    assert (found["conf"], found["triggered_by"]) == (typed, "ui")
    assert found["note"] == "streamed paused: the source is being moved"
    with world.ledger() as ledger:
        generation = ledger.generations.current(NAME)
        assert generation is not None
        assert paused(ledger, generation.id) == "the source is being moved"
        resume(ledger, generation.id, "the form was looked at")
