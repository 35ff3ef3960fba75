"""`twinstream new`: a first definition that runs."""

from __future__ import annotations

import importlib.util
import keyword
import sys
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from twinstream.cli.output import AsJson, emit, say
from twinstream.errors import DefinitionError, Refused
from twinstream.pipeline import check_name
from twinstream.settings import Settings

TEMPLATE = Path(__file__).parent / "templates" / "pipeline.py.tmpl"
Name = Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and underscores.")]


def new(name: Name, as_json: AsJson = False) -> None:
    """Write a definition to start from; it runs as it is."""
    folder = Settings.from_env().pipelines
    _check(name, folder)
    file = folder / f"{name}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as opened:
            opened.write(Template(TEMPLATE.read_text(encoding="utf-8")).substitute(name=name))
    except FileExistsError:
        raise Refused(f"{file} exists already.", next_step="Choose another name, or remove the file first.") from None
    except OSError as error:
        raise Refused(
            f"{file} cannot be written: {error.strerror}.",
            next_step="Set TWINSTREAM_PIPELINES to a folder that can be written.",
        ) from error
    steps = [
        f"twinstream lint {name}",
        f"twinstream generate {name}",
        f"twinstream drain {name}",
        f"twinstream read {name} --limit 10",
    ]
    emit({"pipeline": name, "file": str(file), "next": steps}, as_json, lambda: _show(file, steps))


def _check(name: str, folder: Path) -> None:
    """Refuses a name that is not a pipeline's, that another file has taken, or that would hide a Python module."""
    check_name(name)
    if keyword.iskeyword(name) or _is_module(name, folder):
        raise DefinitionError(
            f"The pipeline name {name!r} is not usable: it is a word of Python's, or an installed module has it.",
            next_step=f"Choose another name, for example {name}_events.",
        )
    if folder.is_dir():
        from twinstream.catalog import load_catalog

        found = load_catalog(folder).definitions.get(name)
        if found is not None:
            raise Refused(
                f"{found.file} defines a pipeline {name} already.", next_step="Choose another name, or remove the file."
            )


def _is_module(name: str, folder: Path) -> bool:
    """Definitions can import each other by name, so a definition must not stand in the way of an installed module."""
    if name in sys.stdlib_module_names:
        return True
    spec = importlib.util.find_spec(name)
    if spec is None:
        return False
    return spec.origin is None or Path(spec.origin).parent != folder


def _show(file: Path, steps: list[str]) -> None:
    say(f"Wrote {file}. Next:")
    for step in steps:
        say(f"  {step}")
