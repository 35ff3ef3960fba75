"""What all operators share: the pipeline, the engine's settings, who is asking, and links."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException, DownstreamTasksSkipped

from twinstream_airflow import settings
from twinstream_airflow.links import SparkLink, show
from twinstream_airflow.metrics import tell
from twinstream_airflow.running.failures import in_airflows_words

if TYPE_CHECKING:
    from airflow.sdk import BaseOperatorLink, Context

    from twinstream.engine import Engine
    from twinstream.settings import Settings
    from twinstream_airflow.running.job import Job


class EngineOperator(BaseOperator):
    """Uses the engine. What goes wrong is in the log as one line before Airflow shows where it was raised."""

    ui_color = "#e8f0fe"

    def work(self, context: Context) -> Any:
        """What the operator does."""
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        return self.told(lambda: self.work(context))

    def told(self, work: Callable[[], Any]) -> Any:
        """Does it; what goes wrong is one line in the log."""
        try:
            return work()
        except (AirflowSkipException, DownstreamTasksSkipped):
            raise
        except AirflowException as error:
            self.log.error("%s", error)
            raise


class TwinstreamOperator(EngineOperator):
    """Works on one pipeline with the engine in the task's own process: no Spark is started."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, **options: Any) -> None:
        super().__init__(**options)
        self.pipeline = pipeline

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """The engine, whose errors are told in Airflow's way."""
        from twinstream.engine import Engine

        with in_airflows_words():
            opened = Engine(settings.of_task(self.pipeline))
            try:
                yield opened
                tell(opened.ledger, self.pipeline)
            finally:
                opened.close()


class SparkOperator(TwinstreamOperator):
    """Runs one command of the engine on the Spark that an Airflow connection names.

    A connection with a master means spark-submit; one of a Spark Connect server means a client of it, which starts no
    JVM. What came of it is read back from the ledger, where attempts and runs carry who asked.
    """

    template_fields: Sequence[str] = ("pipeline", "spark")
    operator_extra_links: Collection[BaseOperatorLink] = (SparkLink(),)
    command: ClassVar[str]

    def __init__(self, *, spark: str = "spark_default", **options: Any) -> None:
        super().__init__(**options)
        self.spark = spark
        self._job: Job | None = None

    def arguments(self) -> list[str]:
        """What the command gets on its command line, the pipeline first."""
        return [self.pipeline]

    def outcome(self, engine: Engine, said: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
        """What is handed on as the task's result; `asked` is what all tries of this task have in common."""
        return dict(said)

    def look(self, context: Context) -> None:
        """What is to be seen to before anything is run; raises where nothing is to be run."""

    def work(self, context: Context) -> dict[str, Any]:
        said = self.run_on_spark(context)
        with self.engine() as engine:
            return self.outcome(engine, said, asked_by(context))

    def run_on_spark(self, context: Context) -> dict[str, Any]:
        """Runs the command and returns what it said."""
        task_instance = context["ti"]
        with in_airflows_words():
            known = settings.of_task(self.pipeline)
            self._job = self._new_job(known, attempt_of(context), lambda url: self._watch_at(task_instance, url))

        def look() -> None:
            self.look(context)
            self._watch_at(task_instance, task_instance.log_url)

        return self._job.run(look)

    def on_kill(self) -> None:
        if self._job is not None:
            self._job.kill()

    def _new_job(self, known: Settings, attempt: Mapping[str, str], on_ui: Any) -> Job:
        from twinstream_airflow.running.where import ConnectServer, resolve

        where = resolve(self.spark)
        if isinstance(where, ConnectServer):
            from twinstream_airflow.running.job import ConnectJob

            return ConnectJob(where, self.command, self.arguments(), known, attempt, on_ui)
        from twinstream_airflow.running.submit import SubmitJob

        return SubmitJob(where, self.command, self.arguments(), known, attempt, on_ui)

    def _watch_at(self, task_instance: Any, address: str) -> None:
        show(self, task_instance, SparkLink(), address)


def attempt_of(context: Context) -> dict[str, str]:
    """Who is asking, down to the try."""
    return asked_by(context) | {"try_number": str(context["ti"].try_number)}


def asked_by(context: Context) -> dict[str, str]:
    """Who is asking, the same for every try of a task."""
    task_instance = context["ti"]
    return {name: str(getattr(task_instance, name)) for name in ("dag_id", "run_id", "task_id", "map_index")}


def number(value: object) -> int | None:
    """A whole number out of a template; None where a form left it empty."""
    text = str(value).strip()
    return None if text in ("", "None") else int(text)


def yes(value: object) -> bool:
    """Yes or no out of a template."""
    return str(value).strip().lower() == "true"
