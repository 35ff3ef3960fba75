"""The users' own suites: one file per pipeline in the expectations folder, with `suite`, a function or a value."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.columns import nearest
from twinstream.errors import SuiteError
from twinstream.pipeline import check_name

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite


def has_suite(folder: Path, pipeline: str) -> bool:
    """Whether the users wrote expectations for the pipeline."""
    check_name(pipeline)
    return (folder / f"{pipeline}.py").is_file()


def load_suite(folder: Path, pipeline: str) -> ExpectationSuite:
    """The users' suite for a pipeline; one clear error for whatever is wrong with it."""
    if not has_suite(folder, pipeline):
        known = sorted(file.stem for file in folder.glob("*.py")) if folder.is_dir() else []
        raise SuiteError(
            f"There is no suite for {pipeline} in {folder}.",
            next_step=nearest(pipeline, known) or f"Write {pipeline}.py there, with a function suite().",
        )
    return _checked(_run(folder / f"{pipeline}.py"), pipeline)


def check_columns(suite: ExpectationSuite, pipeline: str, columns: Sequence[str]) -> None:
    """Refuses a suite that asks for a column that the rows do not have, before anything is computed."""
    for expectation in suite.expectations:
        for column in _columns_of(expectation):
            if column not in columns:
                raise SuiteError(
                    f"The suite of {pipeline} expects something of the column {column!r}, which the result does not "
                    f"have ({expectation.expectation_type}).",
                    next_step=nearest(column, list(columns)) or f"The columns are {', '.join(columns)}.",
                )


def _columns_of(expectation: Any) -> Iterator[str]:
    for name in ("column", "column_A", "column_B"):
        value = getattr(expectation, name, None)
        if isinstance(value, str):
            yield value
    if expectation.expectation_type.startswith(("expect_multicolumn", "expect_compound", "expect_select_column")):
        yield from (name for name in getattr(expectation, "column_list", None) or () if isinstance(name, str))


def _run(file: Path) -> Any:
    """What `suite` in the file gives; the file is run anew each time, under a name nobody else imports."""
    spec = importlib.util.spec_from_file_location(f"twinstream_expectations.{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        found = getattr(module, "suite", None)
        return found() if callable(found) else found
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        at = lines[-1] if lines else getattr(error, "lineno", None)
        raise SuiteError(
            f"{file.name}{f', line {at}' if at else ''}: {type(error).__name__}: {_first_line(error)}",
            next_step=f"Correct the file in {file.parent}.",
        ) from error


def _checked(found: Any, pipeline: str) -> ExpectationSuite:
    import great_expectations as gx

    if not isinstance(found, gx.ExpectationSuite):
        what = "has no `suite`" if found is None else f"gives a {type(found).__name__} as its suite"
        raise SuiteError(
            f"{pipeline}.py {what}.", next_step="Let its function suite() return a great_expectations ExpectationSuite."
        )
    if not found.expectations:
        raise SuiteError(f"The suite of {pipeline} expects nothing.", next_step="Add an expectation to it.")
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or "no message").splitlines()[0]
