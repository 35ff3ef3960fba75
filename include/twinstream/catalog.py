"""The catalog: every definition in the pipelines folder, by name."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from twinstream.columns import nearest
from twinstream.errors import DefinitionError, TwinstreamError, UnknownPipeline
from twinstream.pipeline import Definition, Pipeline, check


@dataclass(frozen=True)
class Broken:
    """A file in the pipelines folder that gives no sound definition."""

    file: Path
    error: TwinstreamError


@dataclass(frozen=True)
class Catalog:
    """What the pipelines folder holds."""

    folder: Path
    definitions: dict[str, Definition]
    broken: tuple[Broken, ...]

    def get(self, name: str) -> Definition:
        """The definition `name`; raises its own error if its file is broken."""
        if name in self.definitions:
            return self.definitions[name]
        for broken in self.broken:
            if broken.file.stem == name:
                raise broken.error
        raise UnknownPipeline(
            f"There is no pipeline {name!r} in {self.folder}.",
            next_step=nearest(name, list(self.definitions))
            or "`twinstream list` shows the pipelines, `twinstream new NAME` starts one.",
        )


def load_catalog(folder: Path) -> Catalog:
    """Loads every definition; a broken file does not keep the others from loading."""
    if not folder.is_dir():
        raise UnknownPipeline(
            f"The pipelines folder {folder} does not exist.",
            next_step="Set TWINSTREAM_PIPELINES to the folder with the definitions, or make it.",
        )
    definitions: dict[str, Definition] = {}
    broken: list[Broken] = []
    for file in sorted(folder.glob("*.py")):
        if file.name.startswith(("_", ".")):
            continue
        try:
            pipeline = _load(file)
            if pipeline is None:
                continue
            definition = check(pipeline, file)
            if definition.name in definitions:
                other = definitions[definition.name].file.name
                raise DefinitionError(f"{file.name} and {other} both define {definition.name!r}.")
            definitions[definition.name] = definition
        except TwinstreamError as error:
            error.what = error.what if file.name in error.what else f"{file.name}: {error.what}"
            broken.append(Broken(file, error))
    return Catalog(folder, definitions, tuple(broken))


def _load(file: Path) -> Pipeline | None:
    """Runs a definition file; helper modules beside it, without a `pipeline`, are not definitions."""
    name = f"twinstream_pipelines.{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(file.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except TwinstreamError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        at = lines[-1] if lines else getattr(error, "lineno", None)
        raise DefinitionError(
            f"{file.name}{f', line {at}' if at else ''}: {type(error).__name__}: {error}",
            next_step="Correct the file, then run `twinstream lint`.",
        ) from error
    found = getattr(module, "pipeline", None)
    if found is None:
        return None
    if not isinstance(found, Pipeline):
        raise DefinitionError(
            f"{file.name}: `pipeline` is a {type(found).__name__}, not a Pipeline.",
            next_step="Assign pipeline = Pipeline(…).",
        )
    return found
