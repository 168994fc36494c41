"""Read a job file: one job as somebody would submit it, in the units people write.

The keys are the columns of a job table, so that a row of a trace and a file say the same.
"""

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import replace

from tenfold.files.document import read_document
from tenfold.files.fleet_rows import Name, Row
from tenfold.files.rows import read_row
from tenfold.model.errors import FaultyFile
from tenfold.model.finding import Finding
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job import Job, shape_of
from tenfold.model.terms import JobKind, Terms
from tenfold.model.units import SECOND, Millis
from tenfold.model.where import Level, Togetherness, Where

Seconds = Annotated[float, Meta(gt=0, le=1e10)]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Names = list[Name]


class JobRow(Row, frozen=True, kw_only=True):
    """The whole file."""

    job_id: Name
    gpus: Annotated[float, Meta(ge=0, le=10_000_000)]
    team: str = ""
    user: str = ""
    gpus_per_node: Count | None = None
    gpu_type: Name | Names = field(default_factory=list[str])
    cpus: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    mem_gib: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    limit_s: Seconds | None = None
    priority: Annotated[int, Meta(ge=-1_000_000_000, le=1_000_000_000)] = 0
    kind: JobKind = "batch"
    preemptible: bool = True
    checkpoint_every_s: Seconds | None = None
    least_gpus: Count | None = None
    most_gpus: Count | None = None
    after: Names = field(default_factory=list[str])
    off_peak: bool = False
    within: Level = ""
    how: Togetherness = "preferred"
    needs: Names = field(default_factory=list[str])
    avoids: Names = field(default_factory=list[str])


def read_job_file(path: FilePath) -> Job:
    """Return the job of a file, or raise `FaultyFile` with all its faults.

    When it is submitted, and after whom, is for the reader to say.
    """
    document = read_document(path)
    findings: list[Finding] = []
    row = read_row(JobRow, document.values, (), findings)
    if row is not None:
        findings += _faults(row)
    if row is None or findings:
        located = [
            replace(one, file=document.file, line=document.line_of(one.path)) for one in findings
        ]
        raise FaultyFile(str(path), sorted(located, key=lambda one: one.line or 0))
    return _job(row)


def _job(row: JobRow) -> Job:
    types = [row.gpu_type] if isinstance(row.gpu_type, str) else row.gpu_type
    avoids = [*row.avoids, *(["production"] if row.kind == "experiment" else [])]
    where = Where(
        within=row.within,
        how=row.how,
        needs=tuple(row.needs),
        avoids=tuple(dict.fromkeys(avoids)),
    )
    shape = shape_of(
        row.gpus,
        gpus_per_node=row.gpus_per_node,
        accelerators=tuple(types),
        cpus=row.cpus,
        memory_gib=row.mem_gib,
        where=where if where.key else None,
    )
    terms = _terms(row)
    return Job(
        id=JobId(row.job_id),
        shape=shape,
        submitted_ms=Millis(0),
        team=TeamId(row.team),
        user=row.user,
        priority=row.priority,
        limit_ms=_millis(row.limit_s),
        terms=None if terms == Terms() else terms,
    )


def _terms(row: JobRow) -> Terms:
    is_elastic = row.least_gpus is not None or row.most_gpus is not None
    return Terms(
        kind=row.kind,
        preemptible=row.preemptible,
        checkpoint_every_ms=_millis(row.checkpoint_every_s),
        least_gpus=(row.least_gpus or int(row.gpus)) if is_elastic else 0,
        most_gpus=(row.most_gpus or int(row.gpus)) if is_elastic else 0,
        after=tuple(JobId(name) for name in row.after),
        off_peak=row.off_peak,
    )


def _faults(row: JobRow) -> Iterator[Finding]:
    if row.gpus > 1 and row.gpus % 1:
        yield _wrong("gpus", f"`gpus` is {row.gpus:g}: a share is of one GPU, several are whole")
    elif row.gpus_per_node and row.gpus % row.gpus_per_node:
        said = f"`gpus` is {row.gpus:g}: nodes of {row.gpus_per_node} do not add up to it"
        yield _wrong("gpus", said)
    if row.least_gpus is not None and row.least_gpus > row.gpus:
        said = f"`least_gpus` is {row.least_gpus}, more than the {row.gpus:g} asked for"
        yield _wrong("least_gpus", said)
    if row.most_gpus is not None and row.most_gpus < row.gpus:
        said = f"`most_gpus` is {row.most_gpus}, less than the {row.gpus:g} asked for"
        yield _wrong("most_gpus", said)


def _wrong(key: str, said: str) -> Finding:
    hint = "`docs/reference/job-traces.md` says what each key takes"
    return Finding(code="wrong-value", message=said, hint=hint, path=(key,))


def _millis(seconds: float | None) -> Millis | None:
    return None if seconds is None else Millis(round(seconds * SECOND))
