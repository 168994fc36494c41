"""Those who wait, team by team, and whose turn it is.

Jobs of one team, priority and shape wait in one class. The turn of a team is that of its
first job, whether that can start or not; when it comes, the team's classes that are worth
trying are tried in order. Teams meet level by level up the tree, so that a change in one of
them costs a few steps of its own branch and nothing elsewhere.

A class that found no room is parked until room of its kind is freed. A class that a quota
stopped waits at the gate of the team whose limit it met, until that team gives something back.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Literal, NamedTuple

from tenfold.decide.place.govern.asks import Amounts
from tenfold.decide.place.govern.tree import Obstacle, Team, Tree
from tenfold.model.job import Job, Shape

STALE_MOST = 4_096
"""Places kept before those that hold no more are cleared away."""
State = Literal["active", "parked", "gated"]


class Option(NamedTuple):
    """An accelerator type that will do, and what it would take from quotas."""

    accelerator: str
    amounts: Amounts


class Class:
    """Waiting jobs of one team, priority and shape."""

    __slots__ = (
        "amounts",
        "is_gang",
        "least",
        "line",
        "options",
        "priority",
        "shape",
        "stamp",
        "state",
        "team",
    )

    def __init__(
        self, team: Team, shape: Shape, priority: int, options: tuple[Option, ...]
    ) -> None:
        self.team = team
        self.shape = shape
        self.priority = priority
        self.options = options
        self.amounts = options[0].amounts
        """What its head takes from quotas, of the type that it is offered first."""
        self.line: list[tuple[int, int, Job]] = []
        self.state: State = "active"
        self.stamp = 0
        """Renewed at each change of state, so that stale places at gates are known."""
        self.is_gang = False
        """Whether it asks for whole nodes, so that small jobs could starve it."""
        self.least = 0
        """A node with fewer free GPUs cannot be what a parked class waits for."""


class Lines:
    """All waiting jobs under a tree of teams."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.count = 0
        self._classes: dict[Team, dict[tuple[int, str], Class]] = {}
        self._parked: dict[str, dict[Class, None]] = {}
        """Classes that found no room, by shape."""
        self._dirty: dict[Team, None] = {}
        """Teams with gates that gave something back."""

    def __iter__(self) -> Iterator[Class]:
        for classes in self._classes.values():
            yield from classes.values()

    @property
    def is_dirty(self) -> bool:
        """Whether a team with somebody at its gate gave something back."""
        return bool(self._dirty)

    def below(self, team: Team) -> Iterator[Class]:
        """Yield the classes of a team and of all below it."""
        yield from self._classes.get(team, {}).values()
        for child in team.children:
            yield from self.below(child)

    def get(self, team: Team, priority: int, shape: Shape) -> Class | None:
        """Return a class, where anybody waits in it."""
        classes = self._classes.get(team)
        return None if classes is None else classes.get((priority, shape.key))

    def enter(self, new: Class) -> None:
        """Add a class that nobody waits in yet."""
        self._classes.setdefault(new.team, {})[new.priority, new.shape.key] = new

    def add(self, cls: Class, job: Job) -> None:
        """Put a job into its class."""
        place = (job.submitted_ms, job.seq, job)
        heappush(cls.line, place)
        if job.terms is not None and job.terms.least_gpus:
            cls.least = min(cls.least, 1)
        self.count += 1
        if cls.line[0] is place:
            if cls.state != "active":
                # Another head may find room where the last one found none.
                self._set(cls, "active")
            self._refresh(cls.team)

    def best(self) -> Class | None:
        """Return the class whose head has the first turn of all that are worth trying."""
        node = self._tree.root
        while node.tries:
            tries = node.tries
            while tries and tries[0][5] != tries[0][6].stamp:
                heappop(tries)
            if not tries:
                return None
            node = tries[0][6]
            if not node.children:
                return self._first_active(node)
        return None

    def leave(self, cls: Class) -> Job:
        """Take out the head of a class."""
        job = heappop(cls.line)[2]
        self.count -= 1
        if not cls.line:
            del self._classes[cls.team][cls.priority, cls.shape.key]
            cls.stamp += 1
        elif cls.state != "active":
            self._set(cls, "active")
        self._refresh(cls.team)
        return job

    def touch(self, team: Team) -> None:
        """Hear that what a team holds has changed, and with it its turn."""
        self._refresh(team)

    def gave_back(self, team: Team) -> None:
        """Hear that a team holds less than before; those at gates above it may pass."""
        within = self._tree.is_within
        for node in team.path:
            if node.gates:
                self._dirty[node] = None
            if node.children and node.parent is not None:
                self._rouse_owed(node)
        for cls in self._classes.get(team, {}).values():
            if cls.state == "parked" and within(team, cls.amounts):
                self._set(cls, "active")
        self.touch(team)

    def _rouse_owed(self, node: Team) -> None:
        """Let those below a parent try again that are owed room now that it holds less."""
        for child in node.children:
            if child.children:
                self._rouse_owed(child)
            for cls in self._classes.get(child, {}).values():
                self.rouse(cls)

    def set_aside(self, cls: Class, met: list[Obstacle], *, no_room: bool) -> None:
        """Set a class aside until a limit that it met is further away, or room is freed."""
        self._set(cls, "parked" if no_room else "gated")
        if no_room:
            self._parked.setdefault(cls.shape.key, {})[cls] = None
        for node, number, amount in dict.fromkeys(met):
            node.gates.setdefault((number, amount), []).append((cls, cls.stamp))
        self._refresh(cls.team)

    def rouse(self, cls: Class) -> None:
        """Let a class try again that was set aside."""
        if cls.line and cls.state != "active":
            self._set(cls, "active")
            self._refresh(cls.team)

    def offer(self, gpus: int) -> None:
        """Let the shapes try again that a node with so many free GPUs can hold."""
        for key in list(self._parked):
            classes = self._parked[key]
            if any(cls.least <= gpus for cls in classes):
                self.unpark(key)

    def unpark(self, shape_key: str) -> None:
        """Let a shape try again."""
        for cls in self._parked.pop(shape_key, {}):
            if cls.line and cls.state == "parked":
                self._set(cls, "active")
                self._refresh(cls.team)

    def rouse_all(self) -> None:
        """Let everybody try again."""
        for cls in list(self):
            self.rouse(cls)

    def open_gates(self) -> None:
        """Let those in who may pass the gates of teams that gave something back."""
        dirty, self._dirty = self._dirty, {}
        for node in dirty:
            for bucket in list(node.gates):
                number, amount = bucket
                room = self._tree.room(node, number)
                if room >= amount:
                    self._let_in(node, bucket)

    def parked(self) -> Iterator[Class]:
        """Yield every class that found no room."""
        for classes in self._parked.values():
            for cls in classes:
                if cls.line and cls.state == "parked":
                    yield cls

    def _let_in(self, node: Team, bucket: tuple[int, int]) -> None:
        """Let in all who wait at a gate for so much: their turns may have changed meanwhile."""
        for cls, stamp in node.gates.pop(bucket):
            if cls.stamp == stamp and cls.line:
                self._set(cls, "active")
                self._refresh(cls.team)

    def _set(self, cls: Class, state: State) -> None:
        if cls.state == "parked":
            parked = self._parked.get(cls.shape.key)
            if parked is not None:
                parked.pop(cls, None)
                if not parked:
                    del self._parked[cls.shape.key]
        cls.state = state
        cls.stamp += 1

    def _refresh(self, team: Team) -> None:
        """Bring the places of a team, and of those above it, up to date."""
        head, is_active = self._head(team)
        turn_of = self._tree.turn_of
        for node in team.path:
            parent = node.parent
            node.head = head
            if parent is None:
                return
            node.stamp += 1
            if head is not None:
                submitted, seq, _ = head.line[0]
                within, share = turn_of(node, head.amounts)
                entry = (within, share, -head.priority, submitted, seq, node.stamp, node)
                if is_active:
                    heappush(parent.tries, entry)
                if parent.parent is not None:
                    heappush(parent.heads, entry)
            if parent.parent is None:
                return
            first, is_active = _top(parent.heads), _top(parent.tries) is not None
            head = None if first is None else first.head

    def _head(self, team: Team) -> tuple[Class | None, bool]:
        """Return the first class of a team, and whether any of them is worth trying."""
        head: Class | None = None
        is_active = False
        classes = self._classes.get(team)
        if classes:
            for cls in classes.values():
                is_active = is_active or cls.state == "active"
                if head is None or _before(cls, head):
                    head = cls
        return head, is_active

    def _first_active(self, team: Team) -> Class | None:
        """Return the first class of a team that is worth trying."""
        first: Class | None = None
        for cls in self._classes.get(team, {}).values():
            if cls.state == "active" and (first is None or _before(cls, first)):
                first = cls
        return first


def _before(cls: Class, other: Class) -> bool:
    if cls.priority != other.priority:
        return cls.priority > other.priority
    return cls.line[0][:2] < other.line[0][:2]


def _top(places: list[Any]) -> Team | None:
    """Return the first team of a heap, clearing away places that hold no more."""
    while places and places[0][5] != places[0][6].stamp:
        heappop(places)
    if len(places) > STALE_MOST and places[0][6].parent is not None:
        places[:] = [place for place in places if place[5] == place[6].stamp]
        heapify(places)
    return places[0][6] if places else None
