"""docker-compose.yaml is valid, complete, and starts nothing without passwords of the user's own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.deploy.compose import ROOT, compose_config

EXAMPLE = (ROOT / ".env.example").read_text()
SECRETS = re.findall(r"^([A-Z_]+)=$", EXAMPLE, re.MULTILINE)
FILLED = {name: f"canary-{number}" for number, name in enumerate(SECRETS)}
SERVICES = {
    "postgres", "init", "airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer",
    "spark-master", "spark-worker-1", "spark-worker-2", "spark-connect",
}  # fmt: skip


def test_with_the_secrets_filled_in_the_file_is_valid_and_every_service_shows_its_health(tmp_path: Path) -> None:
    read = compose_config(FILLED, tmp_path, "--profile", "kafka")
    assert read.code == 0, read.err
    assert set(read.services) == SERVICES | {"kafka"}
    assert {name for name, service in read.services.items() if "healthcheck" not in service} == {"init"}
    assert {name: service["profiles"] for name, service in read.services.items() if service.get("profiles")} == {
        "kafka": ["kafka"]
    }


@pytest.mark.parametrize("name", SECRETS)
def test_without_one_of_the_secrets_nothing_starts(tmp_path: Path, name: str) -> None:
    read = compose_config({key: value for key, value in FILLED.items() if key != name}, tmp_path)
    assert read.code != 0
    assert name in read.err
    assert "see .env.example" in read.err


def test_the_example_as_it_is_starts_nothing(tmp_path: Path) -> None:
    read = compose_config(dict.fromkeys(SECRETS, ""), tmp_path)
    assert read.code != 0
    assert "see .env.example" in read.err


def test_a_secret_is_only_given_to_those_who_need_it(tmp_path: Path) -> None:
    services = compose_config(FILLED, tmp_path).services
    holders = {
        secret: {name for name, service in services.items() if FILLED[secret] in str(service.get("environment"))}
        for secret in SECRETS
    }
    airflow = {name for name in SERVICES if name.startswith("airflow-")} | {"init"}
    everywhere = dict.fromkeys(SECRETS, airflow)
    assert holders == everywhere | {
        "POSTGRES_PASSWORD": {"postgres", "init"},
        "AIRFLOW_ADMIN_PASSWORD": {"init"},
        "SPARK_SECRET": {"init"},
    }


def test_only_airflows_page_is_open_and_only_to_this_machine(tmp_path: Path) -> None:
    services = compose_config(FILLED, tmp_path).services
    open_ports = {name: str(service["ports"]) for name, service in services.items() if service.get("ports")}
    assert set(open_ports) == {"airflow-api-server"}
    assert "127.0.0.1" in open_ports["airflow-api-server"]


def test_the_command_in_the_example_makes_settings_that_are_complete(tmp_path: Path) -> None:
    found = re.search(r"^#   (\(umask .*\))$", EXAMPLE, re.MULTILINE)
    assert found is not None
    (tmp_path / ".env.example").write_text(EXAMPLE)
    subprocess.run(["bash", "-c", found[1]], cwd=tmp_path, check=True)
    made = tmp_path / ".env"
    assert made.stat().st_mode & 0o777 == 0o600
    settings = dict(re.findall(r"^([A-Z_]+)=(.+)$", made.read_text(), re.MULTILINE))
    assert set(settings) == set(re.findall(r"^([A-Z_]+)=", EXAMPLE, re.MULTILINE))
    assert len({settings[name] for name in SECRETS}) == len(SECRETS)
    assert compose_config(settings, tmp_path).code == 0

    from cryptography.fernet import Fernet

    fernet = Fernet(settings["AIRFLOW_FERNET_KEY"])
    assert fernet.decrypt(fernet.encrypt(b"x")) == b"x"


def test_the_image_is_built_from_what_is_there_and_gets_to_see_all_of_it() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    copied = re.findall(r"^COPY --chown=\S+ (.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    sources = {source for line in copied for source in line.split()}
    assert {"bin", "dags", "include", "plugins", "requirements.txt", "spark_jobs"} < sources
    for source in sources:
        assert (ROOT / source).exists()
        assert f"!{source.split('/')[0]}" in ignored
