"""The engine's settings in Airflow's API server, and how a request gets at the ledger."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from twinstream.catalog import Catalog
from twinstream.errors import TwinstreamError
from twinstream.ledger import Generation, Ledger
from twinstream.pipeline import Definition
from twinstream.settings import Settings
from twinstream_airflow import settings
from twinstream_airflow.web.definitions import definitions
from twinstream_airflow.web.ledger import open_ledger

KEPT_SECONDS = 30.0
"""How long an Airflow connection is remembered before Airflow is asked again."""


class NotThere(TwinstreamError):
    """A page about something that is not there."""

    title = "Not found"


@dataclass(frozen=True)
class Place:
    """What a request reads from."""

    settings: Settings
    ledger: Ledger | None
    catalog: Catalog

    def generation(self, pipeline: str) -> tuple[Ledger, Generation]:
        """The current generation of a pipeline that was run."""
        found = self.ledger.generations.current(pipeline) if self.ledger else None
        if self.ledger is None or found is None:
            known = pipeline in self.catalog.definitions
            raise NotThere(
                f"{pipeline} has not been run yet." if known else f"There is no pipeline {pipeline}.",
                untouched="",
                next_step=f"Trigger {pipeline}__microbatch, or run `twinstream drain {pipeline}`."
                if known
                else "Go to the overview, which lists all pipelines that you may see.",
            )
        return self.ledger, found

    def definition(self, pipeline: str) -> Definition | None:
        """The definition as it is in the folder now."""
        return self.catalog.definitions.get(pipeline)


class Server:
    """The settings of the API server: the environment's, with the ledger that an Airflow connection names."""

    def __init__(self) -> None:
        self._known: tuple[float, Settings] | None = None

    def __call__(self) -> Settings:
        if self._known is None or time.monotonic() - self._known[0] > KEPT_SECONDS:
            self._known = (time.monotonic(), self._ask())
        return self._known[1]

    @staticmethod
    def _ask() -> Settings:
        from airflow.models.connection import Connection
        from airflow.sdk.exceptions import AirflowNotFoundException

        try:
            connection = Connection.get_connection_from_secrets(settings.LEDGER)
        except AirflowNotFoundException:
            return settings.without_ledger()
        url = settings.ledger_url(connection)
        return Settings.from_env({**os.environ, **settings.folders(), "TWINSTREAM_LEDGER_URL": url})


def place(request: Request) -> Place:
    """What this request reads from."""
    find: Callable[[], Settings] = request.app.state.settings
    found = find()
    return Place(found, open_ledger(found.ledger_url), definitions(found.pipelines))


Here = Annotated[Place, Depends(place)]
