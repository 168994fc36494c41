"""Classes of waiting jobs: one team, priority and shape, and alike in what else places them."""

from typing import Literal, NamedTuple

from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import BlockingLimit, Team
from tenfold.model.job.job import Job, Shape

State = Literal["active", "parked", "gated"]
Trait = tuple[int | None, ...]
"""What beside the shape tells where a job may go: its limit where time counts, its sizes."""
Key = tuple[int, str, Trait]
"""Priority, shape and trait: one class of a team."""


class Option(NamedTuple):
    """An accelerator type that will do, and what it would take from quotas."""

    accelerator: str
    amounts: Amounts


class JobClass:
    """Waiting jobs of one team, priority and shape."""

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
        """What its head takes from quotas, of the type that it is offered first."""
        self.queue: list[tuple[int, int, Job]] = []
        self.state: State = "active"
        self.blocking_limits: tuple[BlockingLimit, ...] = ()
        """Any of them that is cleared makes it worth trying again."""
        self.lower_usage: tuple[int, ...] | None = None
        """By hurdle: what its team's lower priorities held, which lowers it; None: nothing does."""
        self.is_gang = False
        """Whether it asks for whole nodes, so that small jobs could starve it."""
        self.least = 0
        """A node with fewer free GPUs cannot be what a parked class waits for."""

    def is_before(self, other: "JobClass") -> bool:
        """Return whether it goes before another of its team."""
        if self.priority != other.priority:
            return self.priority > other.priority
        return self.queue[0][:2] < other.queue[0][:2]
