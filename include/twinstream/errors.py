"""What can go wrong, as classes: each says what happened, what was left untouched and what to do next."""

from __future__ import annotations


class TwinstreamError(Exception):
    """An error that a user can act on; the command line prints it without a stack trace."""

    exit_code = 2
    title = "Error"

    def __init__(self, what: str, *, untouched: str = "Nothing was changed.", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.untouched = untouched
        self.next_step = next_step

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.untouched, self.next_step) if part)


class DefinitionError(TwinstreamError):
    """A pipeline definition that cannot be run as written."""

    title = "Definition error"


class UnknownPipeline(TwinstreamError):
    """No definition of that name in the pipelines folder."""

    title = "Unknown pipeline"


class SettingsError(TwinstreamError):
    """An environment variable or a command-line value that makes no sense."""

    title = "Bad setting"


class BadUsage(TwinstreamError):
    """A command line that cannot be understood: an unknown command or option, a value of the wrong kind."""

    title = "Usage"


class EnvironmentMissing(TwinstreamError):
    """Something the machine must have is not there (Java, jars, a server)."""

    title = "Missing on this machine"


class SourceUnreadable(TwinstreamError):
    """The source's folder or a file in it cannot be read."""

    title = "Source unreadable"


class SinkUnwritable(TwinstreamError):
    """The topic that results go to cannot be written."""

    title = "Sink unwritable"


class SchemaDrift(TwinstreamError):
    """A file whose columns are not those of the definition."""

    title = "Schema drift"


class SourceChanged(TwinstreamError):
    """A range no longer holds the records that were logged for it."""

    title = "Source changed"


class DefinitionChanged(TwinstreamError):
    """The definition would give other results than the generation was built with."""

    exit_code = 1
    title = "Definition changed"


class LedgerError(TwinstreamError):
    """The ledger cannot be opened or used."""

    title = "Ledger error"


class LedgerNewer(LedgerError):
    """The ledger was written by a newer Twinstream."""


class LedgerLocked(LedgerError):
    """Another program keeps the ledger locked."""


class LedgerSinkMismatch(TwinstreamError):
    """Ledger and sink disagree in a way that no crash explains; going on could lose or double data."""

    title = "Ledger and sink disagree"


class LeaseHeld(TwinstreamError):
    """Another runner holds the pipeline."""

    exit_code = 1
    title = "Pipeline is being run"


class Fenced(TwinstreamError):
    """A newer runner or attempt has taken over; this one may not write any more."""

    exit_code = 1
    title = "Taken over"


class CommitConflict(TwinstreamError):
    """Another writer committed to the sink at the same moment; all checks must start again."""

    exit_code = 1
    title = "Commit conflict"


class StagedFileMissing(TwinstreamError):
    """A staged file is not there any more, or not with its size."""

    title = "Staged file missing"


class AccountingOpen(TwinstreamError):
    """The records read are not the records accounted for."""

    title = "Accounting does not close"


class ProcessingFailed(TwinstreamError):
    """A txid cannot be processed; those before it are committed."""

    exit_code = 1
    title = "Processing failed"


class GateHeld(TwinstreamError):
    """A gate refused a txid; it is HELD until it is released or discarded."""

    exit_code = 1
    title = "Held by the gate"


class Refused(TwinstreamError):
    """A request that is understood but may not be carried out now."""

    exit_code = 1
    title = "Refused"


class SuiteError(TwinstreamError):
    """A users' suite of expectations that is not there or cannot be asked."""

    title = "Bad suite"


class QualityError(TwinstreamError):
    """Great Expectations cannot work in its folder."""

    title = "Validation failed"


class ReportError(TwinstreamError):
    """A report that cannot be named, read or written."""

    title = "Report error"


class RepairFailed(TwinstreamError):
    """A repair after which the result is still not right."""

    title = "Repair failed"


class DiskFull(TwinstreamError):
    """No room where something had to be written."""

    title = "Disk full"


class LedgerFull(LedgerError, DiskFull):
    """No room where the ledger is."""

    title = "Disk full"


class SparkLost(TwinstreamError):
    """Spark died, or was stopped, while it was needed."""

    title = "Spark is gone"


class ShapeMismatch(TwinstreamError):
    """Two tables whose rows cannot be compared, for their columns or types are not the same."""

    title = "Tables of different shape"


class Unexpected(TwinstreamError):
    """A fault of ours: an error that nobody foresaw."""

    exit_code = 3
    title = "Unexpected error"
