"""The keys of a job, defined once for HTTP submissions, `Client.submit` and job files.

A job file has the keys of a submission. It may instead give the size of the whole job, with the
columns of a job table; such a file can be tried against a recorded run.

`gpus` counts the whole job, `gpus_per_node` one node; decision 0031 says how they combine.
"""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct, field

from tenfold.model.fleet.constraints import Level, TopologyMode
from tenfold.model.job.origin import Origin
from tenfold.model.job.submission import ARRAY_MOST
from tenfold.model.job.terms import JobKind
from tenfold.model.strings import (
    CheckpointDir,
    Command,
    Environment,
    FolderName,
    FolderPath,
    Image,
    JobNames,
    Line,
    Name,
    NameOrNames,
    Tags,
)

DURATION_S_MAX = 1e9
Duration = (
    Annotated[str, Meta(min_length=1, max_length=40)]
    | Annotated[float, Meta(gt=0, le=DURATION_S_MAX)]
)
NodeCount = Annotated[int, Meta(ge=1, le=100_000)]
DataNames = Annotated[list[Name], Meta(max_length=64)]
GpuCount = Annotated[int, Meta(ge=1, le=10_000_000)]
ALIASES: Mapping[str, str] = {
    "job_id": "name",
    "gpu_type": "accelerator",
    "limit_s": "time_limit",
}
"""Columns of a job table that are aliases of a job-file key."""


class Elastic(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`elastic = {min, max}`: the range of node counts it can run on."""

    min: NodeCount
    max: NodeCount


class Checkpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`checkpoint = {dir, interval}`."""

    dir: CheckpointDir
    interval: Duration | None = None


class JobSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job that can be submitted."""

    command: Command
    name: FolderName = "job"
    team: FolderName | None = None
    image: Image = ""
    nodes: NodeCount | None = None
    """1, unless `gpus` is set: the scheduler then chooses."""
    gpus: Annotated[float, Meta(ge=0, le=10_000_000)] | None = None
    """Total GPUs for the job."""
    gpus_per_node: Annotated[float, Meta(ge=0, le=1_024)] = 0.0
    accelerator: NameOrNames = field(default_factory=list[str])
    cpus_per_node: Annotated[float, Meta(ge=0, le=100_000)] | None = None
    """1, unless a row of a job table sets `cpus`."""
    memory_gib_per_node: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    time_limit: Duration | None = None
    priority: Annotated[int, Meta(ge=-1_000_000_000, le=1_000_000_000)] = 0
    preemptible: bool | None = None
    """Not set: for quota and windows it is preemptible; for a rank, only with a checkpoint."""
    elastic: Elastic | None = None
    array: (
        Annotated[int, Meta(ge=1, le=ARRAY_MOST)] | Annotated[str, Meta(max_length=10_000)] | None
    ) = None
    """The number of members, or their indexes as in Slurm: `1-9:2%3`."""
    after: JobNames = field(default_factory=list[str])
    after_any: JobNames = field(default_factory=list[str])
    singleton: bool = False
    env: Environment = field(default_factory=dict[str, str])
    workdir: FolderPath = ""
    checkpoint: Checkpoint | None = None
    grace: Duration | None = None
    silent_limit: Duration | None = None
    idle_after: Duration | None = None
    kind: JobKind = "batch"
    off_peak: bool = False
    within: Level = ""
    how: TopologyMode = "preferred"
    needs: Tags = field(default_factory=list[str])
    avoids: Tags = field(default_factory=list[str])
    data: DataNames = field(default_factory=list[str])
    """Data of the fleet file that it reads, for the choice of a site."""
    slurm_variables: bool = False
    allow_pending: bool = False
    """Keep it pending where no set of nodes of the fleet can ever run it, until nodes join."""
    origin: Origin | None = None
    """Where it was submitted from; the command line fills it in."""


class JobFile(JobSpec, frozen=True, kw_only=True):
    """A job that can be tried against a recorded run: a submission, or a row of a job table."""

    command: Command = field(default_factory=list[str])
    name: Name = "job"
    """Looser than a submission: these names come from another scheduler and name no folder."""
    team: Line | None = None
    user: Line = ""
    cpus: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    """For the whole job, as `mem_gib` is; both need `gpus`."""
    mem_gib: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    least_gpus: GpuCount | None = None
    most_gpus: GpuCount | None = None
    checkpoint_every_s: Duration | None = None


NOT_SUBMITTED: Mapping[str, str] = {
    "user": "remove it: the token identifies the user",
    "cpus": "use `cpus_per_node`",
    "mem_gib": "use `memory_gib_per_node`",
    "least_gpus": "use `elastic`, in nodes",
    "most_gpus": "use `elastic`, in nodes",
    "checkpoint_every_s": "use `checkpoint = {dir, interval}`",
}
"""Job-file keys that a submission does not accept, and what to use instead."""


def run_only_keys(job: JobSpec) -> list[str]:
    """Return the keys in use that only affect how a job runs, not when or where it starts."""
    keys = ("command", "image", "env", "workdir", "grace", "silent_limit", "slurm_variables")
    used = [key for key in keys if getattr(job, key)]
    return used if job.checkpoint is None else [*used, "checkpoint.dir"]
