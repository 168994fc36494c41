"""Classes of pending jobs: same team, priority and shape, and equivalent for placement."""

from typing import Literal, NamedTuple

from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import BlockingLimit, Team
from tenfold.model.job.job import Job, Shape

State = Literal["active", "parked", "gated"]
Trait = tuple[int | None, ...]
"""What apart from the shape affects placement: the time limit where it matters, and sizes."""
Key = tuple[int, str, Trait]
"""Priority, shape and trait: one class of a team."""


class Option(NamedTuple):
    """An accelerator type that fits, and what it takes from quotas."""

    accelerator: str
    amounts: Amounts


class JobClass:
    """Pending jobs of one team, priority and shape."""

    __slots__ = (
        "amounts",
        "blocking_limits",
        "is_gang",
        "key",
        "least",
        "lower_usage",
        "options",
        "priority",
        "queue",
        "shape",
        "state",
        "team",
    )

    def __init__(
        self,
        team: Team,
        shape: Shape,
        priority: int,
        options: tuple[Option, ...],
        trait: Trait = (),
    ) -> None:
        self.team = team
        self.key: Key = (priority, shape.key, trait)
        self.shape = shape
        self.priority = priority
        self.options = options
        self.amounts = options[0].amounts
        """What its head takes from quotas with the first accelerator type."""
        self.queue: list[tuple[int, int, Job]] = []
        self.state: State = "active"
        self.blocking_limits: tuple[BlockingLimit, ...] = ()
        """The class is worth trying again once any of them has enough headroom."""
        self.lower_usage: tuple[int, ...] | None = None
        """For each limit, the usage of lower priorities in its team; None if it has no effect."""
        self.is_gang = False
        """Whether it requests whole nodes, so that small jobs could starve it."""
        self.least = 0
        """Nodes with fewer free GPUs do not unblock this class while it is parked."""

    def is_before(self, other: "JobClass") -> bool:
        """Return whether it goes before another class of its team."""
        if self.priority != other.priority:
            return self.priority > other.priority
        return self.queue[0][:2] < other.queue[0][:2]
