"""Settings of the simulated world."""

from msgspec import Struct

from tenfold.model.units import HOUR, Millis


class SimSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Delays and costs of actions. The defaults are those of published replays."""

    restart_cost_ms: Millis = Millis(0)
    """Time that each run after the first loses before it resumes; a failed start counts as a run.
    A run whose slots change pays it too."""
    checkpoint_every_ms: Millis = Millis(HOUR)
    """Work since the last checkpoint is lost when a node fails; a preempted job saves on notice.
    Checkpoint terms of a job apply to failures and preemptions alike."""
    start_delay_ms: Millis = Millis(0)
    """Delay of a start or resize."""
    stop_delay_ms: Millis = Millis(0)
    start_failure_share: float = 0.0
    """Share of starts that fail after their delay; the job is requeued."""
    seed: int = 0
