"""Pages by Airflow's own security: real tokens, and an auth manager that can deny one DAG."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.airflow.web.made import Made
from twinstream.settings import Settings

ROLES = ("viewer", "user", "op", "admin")
DENIED = "denied"
"""A user who may do everything but with the DAGs of one pipeline."""
HIDDEN = "hidden"
"""That pipeline."""


@pytest.fixture(scope="session")
def auth_manager(airflow_home: Path) -> Any:
    os.environ.setdefault("AIRFLOW__API_AUTH__JWT_SECRET", "a secret that only these tests have, long enough")
    from airflow import settings
    from airflow.api_fastapi import app as airflow_app
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.models.revoked_token import RevokedToken

    class CanDenyOne(SimpleAuthManager):
        def is_authorized_dag(self, *, method, user, access_entity=None, details=None) -> bool:
            if user.username == DENIED and details is not None and str(details.id).startswith(f"{HIDDEN}__"):
                return False
            return super().is_authorized_dag(method=method, user=user, access_entity=access_entity, details=details)

        def is_authorized_view(self, *, access_view, user) -> bool:
            return user.username != "stranger" and super().is_authorized_view(access_view=access_view, user=user)

    if settings.engine is None:
        settings.initialize()
    RevokedToken.metadata.create_all(settings.engine, [RevokedToken.__table__])
    before = airflow_app._AuthManagerState.instance
    airflow_app._AuthManagerState.instance = CanDenyOne()
    yield airflow_app._AuthManagerState.instance
    airflow_app._AuthManagerState.instance = before


@dataclass(frozen=True)
class Web:
    """The app as Airflow mounts it, with a browser for each user."""

    app: FastAPI
    manager: Any
    outer: FastAPI

    def as_user(self, name: str | None) -> TestClient:
        client = TestClient(self.outer, base_url="http://testserver/twinstream/", follow_redirects=False)
        if name is not None:
            client.cookies.set("_token", self.token(name))
        return client

    def token(self, name: str) -> str:
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

        role = name if name in ROLES else "admin"
        return str(self.manager.generate_jwt(SimpleAuthManagerUser(username=name, role=role.upper())))


def mounted(settings: Callable[[], Settings], manager: Any) -> Web:
    from twinstream_airflow.web.app import create_app
    from twinstream_airflow.web.mount import PREFIX

    app = create_app(settings)
    outer = FastAPI()
    outer.mount(PREFIX, app)
    return Web(app, manager, outer)


def settings_of(made: Made) -> Settings:
    return Settings.from_env(
        {
            "TWINSTREAM_HOME": str(made.home),
            "TWINSTREAM_PIPELINES": str(made.pipelines),
            "TWINSTREAM_LEDGER_URL": made.url,
        }
    )


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.setenv("TWINSTREAM_SQLITE_SYNCHRONOUS", "off")
    return Made(tmp_path)


@pytest.fixture
def web(made: Made, auth_manager: Any) -> Web:
    settings = settings_of(made)
    return mounted(lambda: settings, auth_manager)
