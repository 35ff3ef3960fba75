"""What the JSON says, typed; the pages show exactly this. Times are ISO-8601 in UTC."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

Tone = Literal["bad", "warn", "good", "none"]


class Judgement(BaseModel):
    """One reconciliation in a line."""

    id: int
    frontier: int
    state: str
    verdict: str | None
    differing: int
    counts: dict[str, int]
    whole: bool
    started_at: str | None
    ended_at: str | None
    error: str | None


class Finding(BaseModel):
    """Something that wants attention."""

    tone: Tone
    says: str
    path: str
    """The page that tells more, below the app's own address."""


class Stream(BaseModel):
    """A continuous run that is under way, as it says of itself."""

    run: int
    live: bool
    """Whether it shows itself; else it died or hangs."""
    holder: str
    started_at: str | None
    heartbeat_at: str | None
    heartbeat_age_seconds: float
    every: str | None
    behind: float | None
    """Records in the topics that no txid has."""
    records_per_second: float | None
    batch_seconds: float | None
    """How long the last batch of the query took."""
    asked_by: dict[str, str]


class PipelineLine(BaseModel):
    """One pipeline at a glance."""

    name: str
    mode: Literal["micro-batch", "continuous"]
    """How it is run now."""
    stream: Stream | None = None
    guarantee: str | None
    generation: int | None
    frontier: int
    planned: int
    open: dict[str, int]
    lag_seconds: float
    records_per_second: float | None
    """Of the last committed group, while it was worked on; of a continuous run, of its last batch."""
    committed_at: str | None
    watermark: str | None
    runner: str | None
    epoch: int
    paused: str | None
    verdict: Judgement | None
    tone: Tone
    findings: list[Finding]


class Tile(BaseModel):
    """A number that is seen at a glance."""

    label: str
    value: int
    note: str = ""
    tone: Tone = "none"


class BrokenLine(BaseModel):
    """A file in the pipelines folder that gives no pipeline."""

    file: str
    says: str
    next_step: str


class Overview(BaseModel):
    """Every pipeline that the user may see, what wants attention first."""

    now: str
    total: int
    pipelines: list[PipelineLine]
    broken: list[BrokenLine]
    tiles: list[Tile]


class Part(BaseModel):
    """What one part of a pipeline delivers."""

    part: str
    delivery: str
    reason: str
    weakest: bool


class DefinitionFacts(BaseModel):
    """The definition as it is in the pipelines folder now."""

    file: str
    hash: str
    changed: bool
    """Whether it gives other results than the generation was made with."""
    guarantee: str
    parts: list[Part]
    says: dict[str, str]


class Cell(BaseModel):
    """One txid, or neighbours, on the timeline."""

    first: int
    last: int
    state: str
    """The state that wants most attention among them."""
    counts: dict[str, int]


class Point(BaseModel):
    """One txid, or neighbours, on a plot."""

    first: int
    last: int
    value: float | None


class Series(BaseModel):
    """One measure over the window."""

    name: str
    label: str
    unit: str
    points: list[Point]


class TxidLine(BaseModel):
    """One txid in the table."""

    txid: int
    state: str
    records: int
    rows_out: int | None
    late: int | None
    dead: int | None
    planned_at: str | None
    committed_at: str | None
    seconds: float | None
    """From planned to committed."""
    reason: str | None


class AttemptLine(BaseModel):
    """One try at a group of txids."""

    id: int
    first: int
    last: int
    number: int
    epoch: int
    holder: str
    outcome: str
    started_at: str | None
    ended_at: str | None
    error: str | None
    asked_by: dict[str, str]
    """The Airflow task that asked, where one did."""


class Entry(BaseModel):
    """What people and recoveries did."""

    at: str | None
    kind: str
    txid: int | None
    detail: str


class Field(BaseModel):
    """One thing that a person fills in."""

    name: str
    label: str
    kind: Literal["integer", "text", "boolean"]
    required: bool = False
    value: int | str | bool | None = None


class Action(BaseModel):
    """A run of one of the pipeline's DAGs that a person can ask for."""

    name: str
    label: str
    dag_id: str
    says: str
    """What will happen."""
    conf: dict[str, Any]
    wakes: list[str] = []
    """Other DAGs that must be switched on for it."""
    fields: list[Field] = []
    allowed: bool


class Window(BaseModel):
    """Which txids are shown of all there are."""

    first: int
    last: int
    of: int


class PipelineFacts(BaseModel):
    """One pipeline in full; plots, accounting and table are about the window."""

    line: PipelineLine
    definition: DefinitionFacts | None
    window: Window
    timeline: list[Cell]
    series: list[Series]
    accounting: dict[str, int]
    txids: list[TxidLine]
    more: bool
    """Whether there are more txids in the window than the table shows."""
    attempts: list[AttemptLine]
    journal: list[Entry]
    verdicts: list[Judgement]
    actions: list[Action]


class FileLine(BaseModel):
    """One file of a range."""

    path: str
    records: int | None
    bytes: int | None


class Class(BaseModel):
    """One class of the accounting: how many records, and the sum and XOR of their hashes."""

    name: str
    word: str
    count: int
    sum: str
    xor: str


class DeadLetter(BaseModel):
    """One record that could not be read."""

    reason: str
    file: str
    occurrences: int
    record: str | None
    """None where the definition masks columns."""


class DeadLetters(BaseModel):
    """Dead letters of a txid, capped."""

    total: int
    letters: list[DeadLetter]
    masked: bool


class Committer(BaseModel):
    """Who committed a txid."""

    mode: Literal["micro-batch", "continuous"]
    holder: str
    epoch: int
    asked_by: dict[str, str]


class Transaction(BaseModel):
    """Everything about one txid."""

    pipeline: str
    generation: int
    txid: int
    of: int
    state: str
    failed: bool
    records: int
    bytes: int
    range_digest: str
    files: list[FileLine]
    files_total: int
    batch_time: str | None
    committed_at: str | None
    watermark: str | None
    highest_event_time: str | None
    epoch: int | None
    committed_by: Committer | None
    exempt: bool
    waived: bool
    held_reason: str | None
    discard_reason: str | None
    input: Class | None
    digest: Class | None
    accounting: list[Class]
    closes: bool | None
    """Whether every record that was read is in exactly one class; None as long as it is not processed."""
    rows_out: int | None
    attempts: list[AttemptLine]
    journal: list[Entry]
    actions: list[Action]


class Proof(BaseModel):
    """The certificate of a frontier, and whether it is as it was written."""

    content: dict[str, Any]
    sealed: bool


class Page(BaseModel):
    """A page of Great Expectations' Data Docs."""

    suite: str
    path: str


class ReconciliationFacts(BaseModel):
    """One reconciliation in full."""

    pipeline: str
    judgement: Judgement
    sentence: str
    report: dict[str, Any] | None
    """The report as `twinstream reconcile --json` writes it; None as long as it runs, and where it failed."""
    history: list[Judgement]
    certificate: Proof | None
    data_docs: list[Page]
    actions: list[Action]
