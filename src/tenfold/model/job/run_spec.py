"""What a job runs: the command and its environment, as opposed to the resources it requests.

A simulated job has none. Deciders never see it: placement does not depend on the command.
"""

from msgspec import Struct, field

from tenfold.model.job.origin import Origin
from tenfold.model.units import SECOND, Millis

GRACE_MS = Millis(30 * SECOND)
"""Time from SIGTERM to SIGKILL where the job sets none: the default of Kubernetes."""


class CheckpointSpec(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """Where a job keeps its checkpoints, and how often it says it saves."""

    folder: str
    every_ms: Millis | None = None


class RunSpec(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The command of one job: an argument vector, never a shell line."""

    name: str
    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    folder: str = ""
    """Working directory; empty means a folder for the job in its team's folder."""
    image: str = ""
    checkpoint: CheckpointSpec | None = field(default=None, name="saves")
    grace_ms: Millis = GRACE_MS
    silent_ms_most: Millis | None = None
    """A member without a heartbeat for longer than this is considered hung; None disables it."""
    trace: str = ""
    """The trace that the submission belongs to, as a `traceparent`; empty without one."""
    origin: Origin | None = None
    """Where it was submitted from, if the command line submitted it."""
    slurm_variables: bool = False
    """Whether its processes get Slurm's variables too, such as `SLURM_JOB_ID`."""
    rerun_of: str = ""
    """The job that it repeats, if it was submitted as a rerun."""
    submit_folder: str = ""
    """The submitter's folder, where the command starts if `folder` is empty. Checkpoints with a
    relative path are in the job's own folder all the same: two jobs must not share them."""
