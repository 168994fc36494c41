"""One simulated replica, and the set of those with a free slot."""

from msgspec import Struct

from tenfold.model.units import Millis

STARTING, READY, DRAINING, STOPPED = range(4)


class SimReplica(Struct, gc=False, eq=False):
    """A replica from its order to its end."""

    number: int
    ordered_ms: Millis
    state: int = STARTING
    ready_ms: int = -1
    stopped_ms: int = -1
    has_failed: bool = False
    requests: int = 0
    tokens: int = 0
    """Outstanding tokens as the gateway counts them: prompts, and an average answer each."""
    place: int = -1
    """Its position among the replicas with a free slot; -1 if it is not among them."""


class OpenReplicas:
    """The ready replicas with a free slot, of which power of two choices picks one."""

    def __init__(self) -> None:
        self.members: list[SimReplica] = []

    def add(self, replica: SimReplica) -> None:
        """Add a replica that has a free slot."""
        replica.place = len(self.members)
        self.members.append(replica)

    def remove(self, replica: SimReplica) -> None:
        """Remove a replica, if it is there."""
        if replica.place < 0:
            return
        last = self.members.pop()
        if last is not replica:
            self.members[replica.place] = last
            last.place = replica.place
        replica.place = -1

    def pick(self, draw: float) -> SimReplica:
        """Return the one with fewer outstanding tokens of two that `draw` in [0, 1) chooses."""
        members = self.members
        many = len(members)
        if many == 1:
            return members[0]
        scaled = draw * many
        first = int(scaled)
        second = int((scaled - first) * (many - 1))
        one, other = members[first], members[second + (second >= first)]
        return one if one.tokens <= other.tokens else other
