"""How code reaches Spark's executors: the engine as one file, functions of definitions by their code."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent
_LEAST_TIME = (1980, 1, 1, 0, 0, 0)


def engine_zip(folder: Path) -> Path:
    """The zip of this engine in `folder`, named by its content: made once, and never changed under a running job."""
    files = {file.relative_to(PACKAGE.parent).as_posix(): file.read_bytes() for file in _files()}
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    target = folder / f"twinstream-{digest.hexdigest()[:16]}.zip"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, scratch = tempfile.mkstemp(dir=folder, prefix=".", suffix=".zip")
    try:
        with os.fdopen(descriptor, "wb") as output, zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
            # Without entries of their own, folders without an __init__.py could not be imported.
            for folder_name in sorted({f"{Path(name).parent.as_posix()}/" for name in files}):
                archive.writestr(zipfile.ZipInfo(folder_name, _LEAST_TIME), b"")
            for name, content in files.items():
                archive.writestr(zipfile.ZipInfo(name, _LEAST_TIME), content)
        Path(scratch).chmod(0o644)
        Path(scratch).replace(target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
    return target


def carried(fn: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """The prepare function `fn`, whose Python functions are sent with their code, as are helpers in `folder`.

    By default a function of a module is sent by its name, and executors have no such module to import.
    """

    def run(*arguments: Any) -> Any:
        from pyspark import cloudpickle

        places = {f"{folder}{os.sep}", f"{folder.resolve()}{os.sep}"}
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if file and file.startswith(tuple(places)) and module.__name__ == name:
                cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        return fn(*arguments)

    return run


def _files() -> list[Path]:
    found = (file for file in PACKAGE.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return sorted(found)
