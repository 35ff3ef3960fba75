"""`<file>__broken`: a definition that cannot be run, where everybody sees it."""

from __future__ import annotations

import re
from typing import Any

from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from twinstream_airflow.dags.common import START


class BrokenOperator(BaseOperator):
    """Fails with the reason why there is no pipeline."""

    def __init__(self, *, cause: str, **options: Any) -> None:
        super().__init__(**options)
        self.cause = cause

    def execute(self, context: Any) -> None:
        raise AirflowFailException(self.cause)


def broken_dag(name: str, file: str, cause: str) -> DAG:
    """A DAG that says what is wrong with a file."""
    with DAG(
        f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}__broken",
        description=f"{file} gives no pipeline",
        schedule=None,
        start_date=START,
        catchup=False,
        doc_md=f"### {file} gives no pipeline\n\n```\n{cause}\n```\n\nAll other definitions have their DAGs.",
        tags={"twinstream", "broken"},
        default_args={"owner": "twinstream", "retries": 0},
    ) as dag:
        BrokenOperator(task_id="broken", cause=cause)
    return dag
