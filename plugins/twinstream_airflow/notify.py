"""Airflow's notifiers by the names that a definition gives."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from twinstream.errors import DefinitionError

if TYPE_CHECKING:
    from airflow.sdk import Context


def notifiers(wanted: Mapping[str, Mapping[str, Any]]) -> list[Callable[[Context], None]]:
    """One notifier for each class that is named, made with the options beside it."""
    return [_notifier(name, options) for name, options in wanted.items()]


def _notifier(name: str, options: Mapping[str, Any]) -> BaseNotifier:
    module, _, attribute = name.rpartition(".")
    try:
        made = getattr(importlib.import_module(module), attribute)(**options)
    except Exception as error:
        raise DefinitionError(
            f"Orchestration(notify=…): {name} cannot be made: {type(error).__name__}: {error}",
            next_step="Name a notifier of an Airflow provider that is installed, with the options it takes.",
        ) from error
    if not isinstance(made, BaseNotifier):
        raise DefinitionError(f"Orchestration(notify=…): {name} is not an Airflow notifier.")
    return made
