"""Leaving out what follows when there is nothing for it to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import SkipMixin

from twinstream_airflow.operators.base import TwinstreamOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class Skipping(SkipMixin):
    """What an operator needs that can leave out tasks after it: Airflow does not even start those."""

    def skip_all(self, context: Context, result: Mapping[str, Any]) -> None:
        """Ends this task with a result and leaves out everything after it."""
        self._skip(context, result, context["task"].get_flat_relatives(upstream=False))

    def skip_some(self, context: Context, result: Mapping[str, Any], task_ids: Collection[str]) -> None:
        """Ends this task with a result and leaves out these tasks only."""
        after = context["task"].get_flat_relatives(upstream=False)
        self._skip(context, result, [task for task in after if task.task_id in task_ids])

    def _skip(self, context: Context, result: Mapping[str, Any], tasks: Collection[Any]) -> None:
        """Airflow ends a task that skips others right there: what it would return is to be pushed before."""
        context["ti"].xcom_push(key="return_value", value=dict(result))
        self.skip(ti=context["ti"], tasks=tasks)


class SkippingOperator(TwinstreamOperator, Skipping):
    """One of them, about a pipeline."""

    inherits_from_skipmixin = True
