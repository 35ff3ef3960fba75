"""Who may see what. The only module that uses Airflow's security; whatever goes wrong in it means no."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPBearer

log = logging.getLogger(__name__)

_bearer = HTTPBearer(auto_error=False)


def dag_of(pipeline: str, family: str = "microbatch") -> str:
    """The DAG whose rights decide."""
    return f"{pipeline}__{family}"


@dataclass(frozen=True)
class Visitor:
    """A signed-in user of Airflow, and what Airflow lets them do."""

    user: Any
    manager: Any

    def may_read(self, pipeline: str) -> bool:
        """Whoever may read a pipeline's micro-batch DAG may read the pipeline."""
        return self._is_authorized("GET", dag_of(pipeline))

    def may_read_dag(self, dag: str) -> bool:
        """Whether they may read a DAG that is no pipeline's."""
        return self._is_authorized("GET", dag)

    def may_run(self, pipeline: str, family: str) -> bool:
        """Whether Airflow would let them trigger this DAG; Airflow decides again when they do."""
        return self._is_authorized("POST", dag_of(pipeline, family), runs=True)

    def readable(self, pipelines: Iterable[str]) -> set[str]:
        """Those of the pipelines that they may read."""
        return {name for name in pipelines if self.may_read(name)}

    def _is_authorized(self, method: str, dag: str, *, runs: bool = False) -> bool:
        try:
            from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails

            details = DagDetails(id=dag, team_name=_team_of(dag))
            entity = DagAccessEntity.RUN if runs else None
            found = self.manager.is_authorized_dag(method=method, access_entity=entity, details=details, user=self.user)
            return found is True
        except Exception as error:
            raise _closed() from error


async def _user(request: Request) -> Any:
    """The user by Airflow's own cookie or token; 401 where there is none."""
    try:
        from airflow.api_fastapi.core_api.security import get_user

        found = await get_user(request, None, await _bearer(request))
    except HTTPException:
        raise
    except Exception as error:
        raise _closed() from error
    if found is None:
        raise HTTPException(401, "Sign in to Airflow first.")
    return found


def signed_in(user: Annotated[Any, Depends(_user)]) -> Visitor:
    """A user who may see pages of plugins at all; asked before every route."""
    try:
        from airflow.api_fastapi.app import get_auth_manager
        from airflow.api_fastapi.auth.managers.models.resource_details import AccessView

        manager = get_auth_manager()
        allowed = manager.is_authorized_view(access_view=AccessView.PLUGINS, user=user)
    except Exception as error:
        raise _closed() from error
    if allowed is not True:
        raise HTTPException(403, "You may not see the pages of plugins. Ask whoever looks after this Airflow.")
    return Visitor(user, manager)


Signed = Annotated[Visitor, Depends(signed_in)]


def reader(pipeline: str, visitor: Signed) -> Visitor:
    """A user who may read the pipeline that the address names, whether or not there is one."""
    if not visitor.may_read(pipeline):
        raise HTTPException(403, f"You may not read {dag_of(pipeline)}, so you may not see {pipeline}.")
    return visitor


Reader = Annotated[Visitor, Depends(reader)]


def _team_of(dag: str) -> str | None:
    from airflow.configuration import conf

    if not conf.getboolean("core", "multi_team", fallback=False):
        return None
    from airflow.models.dag import DagModel

    return DagModel.get_team_name(dag)


def _closed() -> HTTPException:
    log.exception("Rights could not be checked with Airflow")
    return HTTPException(503, "Your rights cannot be checked with Airflow now, so nothing is shown. Try again later.")
