"""All DAGs of a folder of definitions. Nothing here raises: an import error would take down every DAG of its file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow.sdk import DAG, get_parsing_context

from twinstream.catalog import load_catalog
from twinstream.errors import TwinstreamError
from twinstream.sources.kafka.source import KafkaSource
from twinstream_airflow import settings
from twinstream_airflow.dags.broken import broken_dag
from twinstream_airflow.notify import notifiers

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

log = logging.getLogger(__name__)

Dags = dict[str, DAG]


def microbatch_dags(read: Read | None = None) -> Dags:
    """`<pipeline>__microbatch` of every pipeline."""
    from twinstream_airflow.dags.microbatch import microbatch_dag

    return _each("microbatch", microbatch_dag, read)


def continuous_dags(read: Read | None = None) -> Dags:
    """`<pipeline>__continuous` of every pipeline that reads topics."""
    from twinstream_airflow.dags.continuous import continuous_dag

    read = read or Read.folder()
    streamed = tuple(one for one in read.definitions if isinstance(one.pipeline.source, KafkaSource))
    return _each("continuous", continuous_dag, Read(streamed, ()))


def recompute_dags(read: Read | None = None) -> Dags:
    """`<pipeline>__recompute` of every pipeline."""
    from twinstream_airflow.dags.recompute import recompute_dag

    return _each("recompute", recompute_dag, read)


def reconcile_dags(read: Read | None = None) -> Dags:
    """`<pipeline>__reconcile` of every pipeline."""
    from twinstream_airflow.dags.reconcile import reconcile_dag

    return _each("reconcile", reconcile_dag, read)


def repair_dags(read: Read | None = None) -> Dags:
    """`<pipeline>__repair` of every pipeline."""
    from twinstream_airflow.dags.repair import repair_dag

    return _each("repair", repair_dag, read)


def replay_dags(read: Read | None = None) -> Dags:
    """`<pipeline>__replay` of every pipeline."""
    from twinstream_airflow.dags.replay import replay_dag

    return _each("replay", replay_dag, read)


def control_dags(read: Read | None = None) -> Dags:
    """`<pipeline>__control` of every pipeline."""
    from twinstream_airflow.dags.control import control_dag

    return _each("control", control_dag, read)


def maintenance_dags(read: Read | None = None) -> Dags:
    """`twinstream__maintenance`."""
    from twinstream_airflow.dags.maintenance import maintenance_dag

    return _all("maintenance", maintenance_dag, read)


def freshness_dags(read: Read | None = None) -> Dags:
    """`twinstream__freshness`."""
    from twinstream_airflow.dags.freshness import freshness_dag

    return _all("freshness", freshness_dag, read)


def broken_dags(read: Read | None = None) -> Dags:
    """`<file>__broken` of every file that gives no pipeline, and of a folder that cannot be read."""
    read = read or Read.folder()
    dags = [broken_dag(name, file, _told(error)) for name, file, error in read.broken]
    return _named(*dags)


def all_dags() -> Dags:
    """Everything in one: what a DAG file of two lines needs where Twinstream is installed as a package."""
    read = Read.folder()
    families = (
        microbatch_dags, continuous_dags, recompute_dags, reconcile_dags, repair_dags, replay_dags, control_dags,
        maintenance_dags, freshness_dags, broken_dags,
    )  # fmt: skip
    return {name: dag for family in families for name, dag in family(read).items()}


@dataclass(frozen=True)
class Read:
    """What a folder of definitions gave."""

    definitions: tuple[Definition, ...]
    broken: tuple[tuple[str, str, Exception], ...]
    """Name, file and what is wrong."""

    @classmethod
    def folder(cls) -> Read:
        """Reads the folder of the settings."""
        try:
            catalog = load_catalog(settings.without_ledger().pipelines)
        except Exception as error:
            return cls((), (("pipelines", "The pipelines folder", error),))
        broken = tuple((one.file.stem, one.file.name, one.error) for one in catalog.broken)
        return cls(tuple(catalog.definitions.values()), broken)


def _each(family: str, build: Callable[[Definition], DAG], read: Read | None) -> Dags:
    found: Dags = {}
    for definition in _asked_for((read or Read.folder()).definitions):
        try:
            found |= _named(build(definition))
        except Exception as error:
            log.warning("The DAG %s__%s cannot be built", definition.name, family, exc_info=True)
            found |= _named(broken_dag(f"{definition.name}__{family}", definition.file.name, _told(error)))
    return found


def _asked_for(definitions: Sequence[Definition]) -> Sequence[Definition]:
    """All of them, or, in the process of a task, the one that the task belongs to."""
    dag = get_parsing_context().dag_id
    return definitions if dag is None else [one for one in definitions if one.name == dag.partition("__")[0]]


def _all(family: str, build: Callable[[Sequence[Definition]], DAG], read: Read | None) -> Dags:
    try:
        return _named(build([one for one in (read or Read.folder()).definitions if _can_notify(one)]))
    except Exception as error:
        log.warning("The DAG twinstream__%s cannot be built", family, exc_info=True)
        return _named(broken_dag(f"twinstream__{family}", "A definition", _told(error)))


def _can_notify(definition: Definition) -> bool:
    """One pipeline that cannot be built, which its own DAGs tell, must not take down what all pipelines share."""
    try:
        notifiers(definition.pipeline.orchestration.notify)
    except Exception:
        return False
    return True


def _named(*dags: DAG) -> Dags:
    return {dag.dag_id: dag for dag in dags}


def _told(error: Exception) -> str:
    if isinstance(error, TwinstreamError):
        return "\n".join(part for part in (f"{error.title}: {error.what}", error.next_step) if part)
    return f"{type(error).__name__}: {error}"
