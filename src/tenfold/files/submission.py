"""Read what is handed in to be run, from a job file or from the body of a request.

Everything but the command has a default. All faults are named at once, each with its field,
and in a file with its line.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import UNSET, Meta, field
from msgspec.structs import replace

from tenfold.files.document import read_document
from tenfold.files.fleet_rows import Row
from tenfold.files.rows import read_row
from tenfold.files.slurm_times import slurm_seconds
from tenfold.model.errors import FaultyFile
from tenfold.model.finding import Finding
from tenfold.model.ids import FolderName, JobId, Name, TeamId
from tenfold.model.job import Shape, shape_of
from tenfold.model.submission import ARRAY_MOST, Submission
from tenfold.model.terms import JobKind, Terms
from tenfold.model.units import SECOND, Millis
from tenfold.model.where import Level, Togetherness, Where
from tenfold.model.work import GRACE_MS, Saves, Work

Argument = Annotated[str, Meta(max_length=131_072, pattern=r"^[^\x00]*$")]
Variable = Annotated[str, Meta(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
SPAN_S_MOST = 1e9
Span = (
    Annotated[str, Meta(min_length=1, max_length=40)] | Annotated[float, Meta(gt=0, le=SPAN_S_MOST)]
)
Nodes = Annotated[int, Meta(ge=1, le=100_000)]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]
OURS = (
    "TENFOLD_",
    "PET_",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "MASTER_ADDR",
    "MASTER_PORT",
)
"""Variables that are set for every job, and so cannot be its own."""
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)\Z")
_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN_SAID = "write a number of seconds, or `90m`, `12h`, `2d`, `1-12:00:00`"


class ElasticRow(Row, frozen=True, kw_only=True):
    """`elastic = {min, max}`: nodes that it can run on."""

    min: Nodes
    max: Nodes


class CheckpointRow(Row, frozen=True, kw_only=True):
    """`checkpoint = {dir, interval}`."""

    dir: Name
    interval: Span | None = None


class SubmissionRow(Row, frozen=True, kw_only=True):
    """The whole file."""

    command: Annotated[list[Argument], Meta(min_length=1, max_length=4_096)]
    name: FolderName = "job"
    team: FolderName | None = None
    image: Annotated[str, Meta(max_length=1_000)] = ""
    nodes: Nodes = 1
    gpus_per_node: Annotated[float, Meta(ge=0, le=1_024)] = 0.0
    accelerator: Name | Annotated[list[Name], Meta(max_length=20)] = field(
        default_factory=list[str]
    )
    cpus_per_node: Annotated[float, Meta(ge=0, le=100_000)] = 1.0
    memory_gib_per_node: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    time_limit: Span | None = None
    priority: Annotated[int, Meta(ge=-1_000_000_000, le=1_000_000_000)] = 0
    preemptible: bool = True
    elastic: ElasticRow | None = None
    array: Annotated[int, Meta(ge=1, le=ARRAY_MOST)] | None = None
    after: Annotated[list[Name], Meta(max_length=10_000)] = field(default_factory=list[str])
    env: dict[Variable, Argument] = field(default_factory=dict[str, str])
    workdir: Annotated[str, Meta(max_length=4_096, pattern=r"^[^\x00]*$")] = ""
    checkpoint: CheckpointRow | None = None
    grace: Span | None = None
    silent_limit: Span | None = None
    idle_after: Span | None = None
    kind: JobKind = "batch"
    off_peak: bool = False
    within: Level = ""
    how: Togetherness = "preferred"
    needs: list[Name] = field(default_factory=list[str])
    avoids: list[Name] = field(default_factory=list[str])


def read_submission(path: Path) -> dict[str, object]:
    """Return the values of a job file whose faults, if any, have been named with their lines."""
    document = read_document(path)
    findings: list[Finding] = []
    submission_of(document.values, TeamId("any"), "", findings)
    if findings:
        located = [
            replace(one, file=document.file, line=document.line_of(one.path)) for one in findings
        ]
        raise FaultyFile(str(path), sorted(located, key=lambda one: one.line or 0))
    return document.values


def submission_of(
    values: Mapping[str, object], team: TeamId, user: str, findings: list[Finding]
) -> Submission | None:
    """Return what values ask for; None, and findings, where they cannot be used.

    `team` is that of whoever asks, for requests that name none.
    """
    row = read_row(SubmissionRow, dict(values), (), findings)
    if isinstance(line := values.get("command"), str):
        findings[:] = [_as_arguments(one, line) for one in findings]
    if row is not None:
        findings += _faults(row)
    if row is None or findings:
        return None
    return Submission(
        team=TeamId(row.team or team),
        user=user,
        shape=_shape(row),
        work=_work(row),
        priority=row.priority,
        limit_ms=_millis(row.time_limit),
        terms=_terms(row),
        array=row.array or 0,
    )


def _as_arguments(one: Finding, line: str) -> Finding:
    """Return the fault of a command that is a line for a shell with what to write instead."""
    if one.path != ("command",):
        return one
    said = "`command` is a line, and takes a list of arguments: no shell reads it"
    return replace(one, message=said, hint=f'write ["sh", "-c", {line[:60]!r}]')


def _shape(row: SubmissionRow) -> Shape:
    types = [row.accelerator] if isinstance(row.accelerator, str) else row.accelerator
    avoids = [*row.avoids, *(["production"] if row.kind == "experiment" else [])]
    where = Where(
        within=row.within,
        how=row.how,
        needs=tuple(row.needs),
        avoids=tuple(dict.fromkeys(avoids)),
    )
    return shape_of(
        row.gpus_per_node * row.nodes,
        gpus_per_node=int(row.gpus_per_node) if row.nodes > 1 else None,
        accelerators=tuple(types),
        cpus=0.0 if row.elastic else row.cpus_per_node * row.nodes,
        memory_gib=row.memory_gib_per_node * row.nodes,
        where=where if where.key else None,
    )


def _work(row: SubmissionRow) -> Work:
    saves = row.checkpoint
    return Work(
        name=row.name,
        command=tuple(row.command),
        env=tuple(row.env.items()),
        folder=row.workdir,
        image=row.image,
        saves=None if saves is None else Saves(folder=saves.dir, every_ms=_millis(saves.interval)),
        grace_ms=_millis(row.grace) or GRACE_MS,
        silent_ms_most=_millis(row.silent_limit),
    )


def _terms(row: SubmissionRow) -> Terms | None:
    saves, elastic, per_node = row.checkpoint, row.elastic, int(row.gpus_per_node)
    terms = Terms(
        kind=row.kind,
        preemptible=row.preemptible,
        checkpoint_every_ms=None if saves is None else _millis(saves.interval),
        least_gpus=elastic.min * per_node if elastic else 0,
        most_gpus=elastic.max * per_node if elastic else 0,
        after=tuple(JobId(name) for name in row.after),
        off_peak=row.off_peak,
        idle_ms=UNSET if row.idle_after is None else _millis(row.idle_after) or UNSET,
    )
    return None if terms == Terms() else terms


def _faults(row: SubmissionRow) -> Iterator[Finding]:
    gpus = row.gpus_per_node
    if gpus % 1 and (gpus > 1 or row.nodes > 1):
        said = f"`gpus_per_node` is {gpus:g}: a share is of one GPU on one node"
        yield _wrong("gpus_per_node", said, "ask for whole GPUs")
    if row.nodes > 1 and not gpus:
        said = f"`nodes` is {row.nodes}, and no GPU is asked for: a gang holds GPUs on each node"
        yield _wrong("nodes", said, "ask for `gpus_per_node`, or for one node")
    if row.elastic is not None:
        yield from _elastic_faults(row, row.elastic)
    for key in ("time_limit", "grace", "silent_limit", "idle_after"):
        yield from _span_faults(getattr(row, key), (key,))
    if row.checkpoint is not None:
        yield from _span_faults(row.checkpoint.interval, ("checkpoint", "interval"))
    for name in row.env:
        if name.startswith(OURS):
            said = f"`env` sets `{name}`, which is set for every job"
            yield Finding(code="wrong-value", message=said, hint="leave it out", path=("env", name))


def _elastic_faults(row: SubmissionRow, elastic: ElasticRow) -> Iterator[Finding]:
    if not elastic.min <= row.nodes <= elastic.max:
        said = f"`elastic` is {elastic.min} to {elastic.max} nodes, and `nodes` is {row.nodes}"
        yield _wrong("elastic", said, "let `nodes` lie between its bounds")
    if not row.gpus_per_node or row.gpus_per_node % 1:
        said = "an elastic job holds whole GPUs on each node"
        yield _wrong("elastic", said, "ask for `gpus_per_node`")
    if row.memory_gib_per_node:
        said = "an elastic job asks for GPUs alone"
        yield _wrong("memory_gib_per_node", said, "leave it out, or leave out `elastic`")


def _span_faults(span: str | float | None, path: tuple[str, ...]) -> Iterator[Finding]:
    if not isinstance(span, str):
        return
    seconds = _seconds(span)
    if seconds is None:
        said = f"`{path[-1]}` is `{span}`, which is no time"
        yield Finding(code="wrong-value", message=said, hint=_SPAN_SAID, path=path)
    elif seconds > SPAN_S_MOST:
        said = f"`{path[-1]}` is `{span}`, longer than {SPAN_S_MOST:,.0f} seconds"
        yield Finding(code="wrong-value", message=said, hint="write a shorter time", path=path)


def _wrong(key: str, said: str, hint: str) -> Finding:
    return Finding(code="wrong-value", message=said, hint=hint, path=(key,))


def _millis(span: str | float | None) -> Millis | None:
    seconds = _seconds(span) if isinstance(span, str) else span
    return None if seconds is None else Millis(round(seconds * SECOND))


def _seconds(text: str) -> float | None:
    """Return the seconds of `90m` or of a time as Slurm writes it; None where it is neither."""
    match = _SPAN.match(text.strip().lower())
    if match is not None:
        return float(match[1]) * _UNITS_S[match[2]] or None
    try:
        return slurm_seconds(text) or None
    except ValueError:
        return None
