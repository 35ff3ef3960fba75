"""The app as Airflow's plugin system gets it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX = "/twinstream"
"""Where Airflow mounts the app."""


class Mounted:
    """Makes the app at the first request: schedulers, workers and tasks load the plugin too, and show no page."""

    @cached_property
    def app(self) -> ASGIApp:
        from twinstream_airflow.web.app import create_app

        return create_app()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


APPS = [{"app": Mounted(), "url_prefix": PREFIX, "name": "Twinstream"}]
VIEWS = [
    {
        "name": "Twinstream",
        "href": "twinstream/",
        "destination": "nav",
        "url_route": "twinstream",
        "nav_top_level": True,
    },
    {
        "name": "Twinstream",
        "href": "twinstream/tab?dag_id={DAG_ID}",
        "destination": "dag",
        "url_route": "twinstream-of-dag",
    },
    {
        "name": "Twinstream",
        "href": "twinstream/tab?dag_id={DAG_ID}",
        "destination": "dag_run",
        "url_route": "twinstream-of-run",
    },
]
