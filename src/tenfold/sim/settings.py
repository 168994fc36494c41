"""How the hands of a simulated world behave."""

from msgspec import Struct

from tenfold.model.units import HOUR, Millis


class SimSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the simulated hands behave. The defaults are those of published replays."""

    restart_cost_ms: Millis = Millis(0)
    """What each run but the first pays before it goes on; a failed start counts as a run.
    A run whose slots are changed pays it too."""
    checkpoint_every_ms: Millis = Millis(HOUR)
    """Work since the last checkpoint is lost with a node; a preempted job saves on notice.
    What the terms of a job say of its checkpoints holds for nodes and notices alike."""
    start_delay_ms: Millis = Millis(0)
    """From the order of a start or a resize until it is done."""
    stop_delay_ms: Millis = Millis(0)
    start_failure_share: float = 0.0
    """Share of starts that fail after their delay; the job waits again."""
    seed: int = 0
