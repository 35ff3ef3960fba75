"""Great Expectations' results in the words of the shared result model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from twinstream.errors import SuiteError
from twinstream.reconcile.result import Expectation

_EXAMPLES = 3
_LONGEST = 160


def outcomes(result: Any, suite: str) -> tuple[Expectation, ...]:
    """Each expectation of a validated suite and what came of it; an expectation that broke is an error, no failure."""
    return tuple(_outcome(one, suite) for one in result.results)


def _outcome(one: Any, suite: str) -> Expectation:
    config = one.expectation_config
    for message in _broken(one.exception_info):
        raise SuiteError(
            f"The suite {suite} cannot be asked: {_says(config)}: {_short(message.strip().splitlines()[0])}",
            next_step="Correct the expectation: Great Expectations could not compute it on these rows.",
        )
    return Expectation(
        suite=suite,
        says=_says(config),
        severity=str(getattr(config.severity, "value", config.severity)),
        success=bool(one.success),
        observed=observed(one.result),
        column=config.kwargs.get("column"),
    )


def observed(result: Mapping[str, Any]) -> str:
    """What was found, short enough for a line."""
    if result.get("observed_value") is not None:
        return _short(_plain(result["observed_value"]))
    if "unexpected_count" not in result:
        return ""
    count = result["unexpected_count"]
    text = f"{count} of {result['element_count']} rows" if "element_count" in result else f"{count} values"
    values = [_plain(value) for value in result.get("partial_unexpected_list") or () if value is not None]
    examples = list(dict.fromkeys(values))[:_EXAMPLES]
    return _short(f"{text}, such as {', '.join(examples)}" if count and examples else text)


def _broken(info: Mapping[str, Any] | None) -> Iterator[str]:
    """Messages of what was raised; some expectations file one per metric."""
    if not info:
        return
    for part in (info, *(value for value in info.values() if isinstance(value, Mapping))):
        if part.get("raised_exception"):
            yield str(part.get("exception_message") or "unknown error").strip() or "unknown error"


def _says(config: Any) -> str:
    if config.description:
        return str(config.description)
    kwargs = {name: value for name, value in config.kwargs.items() if name != "batch_id"}
    about = kwargs.pop("column", None)
    what = str(config.type).removeprefix("expect_").removeprefix("column_").replace("_", " ")
    rest = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in kwargs.items())
    return (f"{about}: " if about else "") + what + (f" ({rest})" if rest else "")


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
