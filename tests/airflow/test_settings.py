"""The settings inside Airflow: the ledger's connection, and errors of the engine in Airflow's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.airflow.definitions import change
from tests.e2e.events import events, write_json

CANARY = "p@ss:w/rd?&canary"


def connect(monkeypatch: pytest.MonkeyPatch, name: str, **parts: object) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(parts))


def test_without_a_connection_the_ledger_is_the_environments(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from twinstream_airflow import settings

    monkeypatch.setenv("TWINSTREAM_LEDGER_URL", "sqlite:////somewhere/ledger.db")
    assert settings.of_task().ledger_url == "sqlite:////somewhere/ledger.db"


def test_a_postgres_connection_names_the_ledger_whatever_is_in_its_password(
    pipelines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy.engine import make_url

    from twinstream_airflow import settings

    connect(
        monkeypatch, "twinstream_ledger", conn_type="postgres", host="db", port=6543, login="me", password=CANARY,
        schema="ledger", extra={"sslmode": "require"},
    )  # fmt: skip
    url = make_url(settings.of_task().ledger_url)
    assert (url.drivername, url.host, url.port, url.username) == ("postgresql+psycopg", "db", 6543, "me")
    assert (url.password, url.database, dict(url.query)) == (CANARY, "ledger", {"sslmode": "require"})


@pytest.mark.parametrize("text", ["sqlite:////data/ledger.db", '{"conn_type": "sqlite", "schema": "/data/ledger.db"}'])
def test_an_sqlite_connection_names_a_file(pipelines: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    from twinstream_airflow import settings

    monkeypatch.setenv("AIRFLOW_CONN_TWINSTREAM_LEDGER", text)
    assert settings.of_task().ledger_url == "sqlite:////data/ledger.db"


def test_a_connection_that_names_no_ledger_is_refused_without_showing_its_password(
    pipelines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from twinstream.errors import SettingsError
    from twinstream_airflow import settings

    connect(monkeypatch, "twinstream_ledger", conn_type="http", host="x", password=CANARY)
    with pytest.raises(SettingsError, match="names no ledger") as caught:
        settings.of_task()
    assert CANARY not in str(caught.value)


def test_a_kafka_connection_reaches_the_processes_that_need_it(
    pipelines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from twinstream.sources.kafka.connection import client_options
    from twinstream_airflow import settings

    topic = ('"data/orders",', 'topics="orders", connection="kafka_eu",')
    change(pipelines, "orders", ("FileSource", "KafkaSource"), topic, ('format="json",', ""))
    extra = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "group.id": "of no account"}
    connect(monkeypatch, "kafka_eu", conn_type="kafka", host="eu", port=9093, login="me", password=CANARY, extra=extra)
    known = settings.of_task("orders")
    assert client_options("kafka_eu", known.connections) == {
        "bootstrap.servers": "eu:9093", "sasl.username": "me", "sasl.password": CANARY, "sasl.mechanism": "PLAIN",
        "security.protocol": "SASL_SSL",
    }  # fmt: skip
    assert CANARY not in repr(known)
    assert settings.of_task("page_views").connections == {}


def test_links_lead_to_the_pages_wherever_airflow_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from twinstream_airflow.links import data_docs_page, reconciliation_page

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://host/team/airflow/")
    page = "https://host/team/airflow/plugin/twinstream/twinstream/pipelines/orders/reconciliations/7"
    assert reconciliation_page("orders", 7) == page
    found = data_docs_page("orders", "validations/orders/a b.html")
    assert found == "https://host/team/airflow/twinstream/pipelines/orders/data-docs/validations/orders/a%20b.html"


def test_an_unknown_spark_connection_is_one_clear_error_and_never_yarn(pipelines: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from twinstream_airflow.running.where import resolve

    with pytest.raises(AirflowFailException, match="There is no Airflow connection 'nowhere'") as caught:
        resolve("nowhere")
    assert "Nothing was submitted" in str(caught.value)


@pytest.mark.parametrize("kind", ["spark", "spark_connect"])
def test_a_spark_that_does_not_answer_is_told_at_once_and_may_be_tried_again(
    pipelines: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    from twinstream_airflow.running.where import resolve

    host = "spark://127.0.0.1" if kind == "spark" else "127.0.0.1"
    connect(monkeypatch, "dead", conn_type=kind, host=host, port=9, password=CANARY)
    with pytest.raises(AirflowException, match=r"does not answer at 127\.0\.0\.1:9") as caught:
        resolve("dead")
    assert not isinstance(caught.value, AirflowFailException)
    assert CANARY not in str(caught.value)


def test_deploy_mode_cluster_is_refused(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from twinstream_airflow.running.where import resolve

    connect(monkeypatch, "yarn", conn_type="spark", host="yarn", extra={"deploy-mode": "cluster"})
    with pytest.raises(AirflowFailException, match="use deploy mode client"):
        resolve("yarn")


def test_errors_that_a_person_must_mend_are_not_tried_again() -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    from twinstream.errors import LeaseHeld, SourceChanged
    from twinstream_airflow.running.failures import in_airflows_words

    with pytest.raises(AirflowFailException, match=r"\ASource changed: A file is gone\. Nothing was changed\.\Z"), \
            in_airflows_words():  # fmt: skip
        raise SourceChanged("A file is gone.")
    with pytest.raises(AirflowException, match=r"\APipeline is being run: ") as caught, in_airflows_words():
        raise LeaseHeld("Another runner holds it.")
    assert not isinstance(caught.value, AirflowFailException)


def test_every_error_that_may_pass_is_one_of_the_engines() -> None:
    from twinstream import errors
    from twinstream_airflow.running.failures import MAY_PASS

    for name in MAY_PASS:
        assert issubclass(getattr(errors, name), errors.TwinstreamError)


def test_new_data_is_what_is_there_and_in_no_txid(pipelines: Path, tmp_path: Path) -> None:
    from twinstream.engine import Engine
    from twinstream_airflow import settings
    from twinstream_airflow.triggers.new_data import waiting

    known = settings.without_ledger()
    folder = known.home / "data" / "page_views"
    for number in range(3):
        write_json(folder / f"{number}.json", events(number))
    assert waiting(known, "page_views") == 3
    assert not (known.home / "ledger.db").exists()
    engine = Engine(known)
    definition = engine.definition("page_views")
    engine.plan(definition, engine.generation(definition, create=True))
    assert waiting(known, "page_views") == 0
    write_json(folder / "3.json", events(3))
    assert waiting(known, "page_views") == 1
    engine.close()


def test_the_trigger_fires_once_for_what_is_new(pipelines: Path) -> None:
    import asyncio

    from twinstream_airflow import settings
    from twinstream_airflow.triggers.new_data import NewDataTrigger

    folder = settings.without_ledger().home / "data" / "page_views"
    write_json(folder / "0.json", events(0))

    async def watch() -> list[object]:
        trigger = NewDataTrigger("page_views", poll_seconds=0.05)
        running = trigger.run()
        first = await asyncio.wait_for(anext(running), 20)
        following = asyncio.ensure_future(anext(running))
        await asyncio.sleep(0.5)
        assert not following.done()
        write_json(folder / "1.json", events(1))
        return [first.payload, (await asyncio.wait_for(following, 20)).payload]

    found = asyncio.run(watch())
    assert found == [{"pipeline": "page_views", "waiting": 1}, {"pipeline": "page_views", "waiting": 2}]
