"""Great Expectations' folder under the home: made when it is missing, used by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.errors import QualityError
from twinstream.failpoints import durable
from twinstream.quality.gates import one_at_a_time

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.file_data_context import FileDataContext

SITE = "twinstream"
_CONFIGURATION = """\
config_version: 4.0
stores:
  expectations_store:
    class_name: ExpectationsStore
    store_backend: {class_name: TupleFilesystemStoreBackend, base_directory: expectations/}
  validation_results_store:
    class_name: ValidationResultsStore
    store_backend: {class_name: TupleFilesystemStoreBackend, base_directory: validations/}
  checkpoint_store:
    class_name: CheckpointStore
    store_backend:
      class_name: TupleFilesystemStoreBackend
      suppress_store_backend_id: true
      base_directory: checkpoints/
  validation_definition_store:
    class_name: ValidationDefinitionStore
    store_backend: {class_name: TupleFilesystemStoreBackend, base_directory: validation_definitions/}
expectations_store_name: expectations_store
validation_results_store_name: validation_results_store
checkpoint_store_name: checkpoint_store
progress_bars: {globally: false, metric_calculations: false}
analytics_enabled: false
data_docs_sites:
  twinstream:
    class_name: SiteBuilder
    show_how_to_buttons: false
    store_backend: {class_name: TupleFilesystemStoreBackend, base_directory: data_docs/}
    site_index_builder:
      class_name: DefaultSiteIndexBuilder
      validation_results_limit: 100
      renderer: {module_name: twinstream.quality.data_docs, class_name: Index}
      view: {module_name: twinstream.quality.data_docs, class_name: IndexView}
    site_section_builders:
      expectations:
        renderer: {module_name: twinstream.quality.data_docs, class_name: SuitePage}
        view: {module_name: twinstream.quality.data_docs, class_name: PageView}
      validations:
        renderer: {module_name: twinstream.quality.data_docs, class_name: ValidationPage}
        view: {module_name: twinstream.quality.data_docs, class_name: PageView}
      profiling: "None"
"""


def folder_of(home: Path) -> Path:
    """Where Great Expectations keeps suites, results and Data Docs."""
    return home / "great_expectations"


@contextmanager
def file_context(home: Path) -> Iterator[FileDataContext]:
    """The file context, for this process alone while it is used: its stores know nothing of other writers."""
    folder = folder_of(home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise QualityError(
            f"Great Expectations has no folder to work in: {error}.", next_step="Make TWINSTREAM_HOME writable."
        ) from error
    with one_at_a_time, lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield _opened(folder)


def _opened(folder: Path) -> FileDataContext:
    import great_expectations as gx

    file = folder / "great_expectations.yml"
    if not file.exists():
        fresh = folder / ".great_expectations.yml.new"
        with durable("quality.folder"):
            fresh.write_text(_CONFIGURATION)
            os.replace(fresh, file)
    try:
        return gx.get_context(mode="file", context_root_dir=folder)
    except Exception as error:
        raise QualityError(
            f"Great Expectations cannot open {folder}: {(str(error).strip() or type(error).__name__).splitlines()[0]}",
            next_step="Move the folder away: it is made anew, and only the history of Data Docs is lost.",
        ) from error
