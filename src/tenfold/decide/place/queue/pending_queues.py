"""Those who wait, and for what.

Jobs of one team, priority and shape wait in one class. A class that found no room is parked
until room of its kind is freed. A class that a quota stopped waits behind the limit it met,
and one that might displace somebody until those it might displace are others. Whatever a
class waits for, nobody looks at it before that has changed.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from tenfold.decide.place.queue.fair_share_order import Turns
from tenfold.decide.place.queue.job_class import Class, Option, State, Trait
from tenfold.decide.place.queue.preemption_eligibility import Owing, Wanting
from tenfold.decide.place.quota.team_tree import Hurdle, Obstacle, Team, Tree
from tenfold.model.job.job import Job, Shape

__all__ = ["Class", "Lines", "Option"]


class Lines:
    """All waiting jobs under a tree of teams."""

    def __init__(self, tree: Tree, owing: Owing) -> None:
        self._tree = tree
        self._owing = owing
        self._turns = Turns(tree)
        self.count = 0
        self.wanting = Wanting(self._renew)
        self._parked: dict[str, dict[Class, None]] = {}
        """Classes that found no room, by shape."""
        self._touched: dict[Team, bool] = {}
        """Teams that hold another than when last looked at, and whether it was ever less."""
        self.is_dirty = False
        """Whether anybody gave something back since all were last set aside."""

    def __iter__(self) -> Iterator[Class]:
        for team in self._tree.teams.values():
            yield from team.classes.values()

    def get(self, team: Team, priority: int, shape: Shape, trait: Trait = ()) -> Class | None:
        """Return a class, where anybody waits in it."""
        return team.classes.get((priority, shape.key, trait))

    def enter(self, new: Class) -> None:
        """Add a class that nobody waits in yet."""
        new.team.classes[new.key] = new

    def add(self, cls: Class, job: Job) -> None:
        """Put a job into its class."""
        place = (job.submitted_ms, job.seq, job)
        heappush(cls.line, place)
        if job.terms is not None and job.terms.least_gpus:
            cls.least = min(cls.least, 1)
        self.count += 1
        if cls.line[0] is place:
            # Another head may find room where the last one found none.
            self._set(cls, "active")
            self._turns.changed(cls.team)

    def best(self) -> Class | None:
        """Return the class whose head has the first turn of all that are worth trying."""
        if self._touched:
            self._look_again()
        best = self._turns.best()
        if best is None:
            self._renew()
            self.is_dirty = False
        return best

    def leave(self, cls: Class) -> Job:
        """Take out the head of a class."""
        job = heappop(cls.line)[2]
        self.count -= 1
        if not cls.line:
            del cls.team.classes[cls.key]
            self.wanting.pop(cls)
        if cls.state == "parked" or cls in self.wanting.members or not _is_next_alike(cls, job):
            # The next head may find room where this one found none.
            self._set(cls, "active")
        self._turns.changed(cls.team)
        return job

    def touch(self, team: Team) -> None:
        """Hear that what a team holds has changed, and with it its turn."""
        self._touched.setdefault(team, False)
        self._turns.changed(team)

    def gave_back(self, team: Team) -> None:
        """Hear that a team holds less than before; others may pass limits, or be owed room."""
        self.is_dirty = True
        self._touched[team] = True
        self._turns.changed(team)
        for cls in list(team.path[-2].idle):
            self.rouse(cls)
        for node in team.path[1:-1]:
            if any(node.guaranteed):
                # How much of a job reaches the limits above depends on what it holds.
                for cls in list(_below(node)):
                    self.rouse(cls)

    def set_aside(self, cls: Class, met: list[Obstacle], *, no_room: bool) -> None:
        """Set a class aside until a limit in its way is further away, or room is freed."""
        self._set(cls, "parked" if no_room else "gated")
        if no_room:
            self._parked.setdefault(cls.shape.key, {})[cls] = None
        hurdles: list[Hurdle] | None = None
        if self._owing.is_on and cls not in self.wanting.members:
            hurdles = self._owing.hurdles(cls)
        is_lowered = hurdles is not None
        if hurdles is None or _is_elastic(cls):
            limits = [Hurdle(*obstacle) for obstacle in met if obstacle[0] is not cls.team]
            hurdles = limits + (hurdles or [])
        self._keep(cls, hurdles, is_lowered=is_lowered)

    def rouse(self, cls: Class) -> None:
        """Let a class try again that was set aside."""
        if cls.line and cls.state != "active":
            self._set(cls, "active")
            self._turns.changed(cls.team)

    def offer(self, gpus: int) -> None:
        """Let the shapes try again that a node with so many free GPUs can hold."""
        for key in list(self._parked):
            if any(cls.least <= gpus for cls in self._parked[key]):
                self.unpark(key)

    def unpark(self, shape_key: str) -> None:
        """Let a shape try again."""
        for cls in list(self._parked.get(shape_key, ())):
            self.rouse(cls)

    def rouse_all(self) -> None:
        """Let everybody try again, and see anew who wants to displace others."""
        for cls in list(self):
            self.rouse(cls)
        self.wanting.clear()

    def parked(self) -> Iterator[Class]:
        """Yield every class that found no room."""
        if self._touched:
            self._look_again()
        for classes in self._parked.values():
            yield from classes

    def _renew(self) -> None:
        """Bring up to date who may displace others and has not found whom."""
        if self._touched:
            self._look_again()
        wanting, owing = self.wanting, self._owing
        for cls in list(wanting.members):
            if cls.state != "active" and owing.is_on and not owing.is_firm(cls):
                self._judge(cls)

    def _look_again(self) -> None:
        """Look again at those who were set aside in teams that hold another than before."""
        touched, self._touched = self._touched, {}
        for team, gave in touched.items():
            for cls in list(team.classes.values()):
                if cls.state == "active" or self._is_next(cls):
                    continue
                if gave and self._is_nearer(cls):
                    self.rouse(cls)
                else:
                    self._judge(cls)

    def _is_next(self, cls: Class) -> bool:
        """Return whether a class is past its hurdle and waits for its turn alone."""
        lower, team, owing = cls.lower, cls.team, self._owing
        if lower is None or not self._is_cleared(cls) or any(team.guaranteed):
            return False
        if len(cls.options) > 1 or _is_elastic(cls) or (owing.is_on and owing.is_firm(cls)):
            return False
        now = owing.lower(cls, cls.hurdles)
        if now != lower:
            moved = zip(cls.hurdles, now, lower, strict=True)
            hurdles = [each._replace(amount=each.amount - new + old) for each, new, old in moved]
            self._keep(cls, hurdles, is_lowered=True)
        return self._is_cleared(cls)

    def _is_nearer(self, cls: Class) -> bool:
        """Return whether a class is worth trying now that its own team holds less."""
        owing = self._owing
        if cls.state == "parked" and self._tree.is_within(cls.team, cls.amounts):
            return True
        if _is_elastic(cls) or self._may_pass(cls):
            return True
        return owing.is_on and cls not in self.wanting.members and owing.is_owed(cls)

    def _judge(self, cls: Class) -> None:
        """Note whether a class that is set aside is owed room, and what it waits for."""
        if self._is_cleared(cls):
            self.rouse(cls)
            return
        hurdles = self._owing.hurdles(cls) if self._owing.is_on else self._limits(cls)
        is_lowered = self._owing.is_on and hurdles is not None
        if hurdles is not None:
            self.wanting.pop(cls)
        else:
            self.wanting[cls] = None
            hurdles = self._limits(cls)
        # Limits that smaller sizes met are not looked at again.
        hurdles += cls.hurdles if _is_elastic(cls) else ()
        self._keep(cls, hurdles, is_lowered=is_lowered)

    def _may_pass(self, cls: Class) -> bool:
        """Return whether no limit is in the way of a class any more that one stopped."""
        if cls.state == "parked" and len(cls.options) == 1:
            return False
        return any(self._tree.obstacle(cls.team, option.amounts) is None for option in cls.options)

    def _is_cleared(self, cls: Class) -> bool:
        """Return whether a class could be tried, were it its turn."""
        left = self._tree.left
        return any(
            left(node, number, of_quota) >= amount for node, number, amount, of_quota in cls.hurdles
        )

    def _limits(self, cls: Class) -> list[Hurdle]:
        """Return the limits in the way of a class that may displace others."""
        met = (self._tree.obstacle(cls.team, option.amounts) for option in cls.options)
        return [Hurdle(*each) for each in met if each is not None and each[0] is not cls.team]

    def _keep(self, cls: Class, hurdles: list[Hurdle], *, is_lowered: bool) -> None:
        """Keep a class behind hurdles, the lowest of each kind."""
        if len(hurdles) > 1:
            lowest: dict[tuple[Team, int, bool], Hurdle] = {}
            for each in sorted(hurdles, key=_amount):
                lowest.setdefault((each.node, each.number, each.of_quota), each)
            hurdles = list(lowest.values())
        cls.hurdles = tuple(hurdles)
        cls.lower = self._owing.lower(cls, hurdles) if is_lowered and hurdles else None
        branch = cls.team.path[-2]
        if branch is not cls.team:
            branch.idle.pop(cls, None)
            if cls.state == "parked" or cls in self.wanting.members:
                branch.idle[cls] = None
        self._turns.changed(cls.team)

    def _set(self, cls: Class, state: State) -> None:
        if cls.state == "parked":
            parked = self._parked[cls.shape.key]
            del parked[cls]
            if not parked:
                del self._parked[cls.shape.key]
        if state == "active":
            cls.hurdles = ()
            cls.team.path[-2].idle.pop(cls, None)
        cls.state = state


def _below(team: Team) -> Iterator[Class]:
    """Yield the classes of a team and of all below it."""
    yield from team.classes.values()
    for child in team.children:
        yield from _below(child)


def _is_next_alike(cls: Class, job: Job) -> bool:
    """Return whether what stops a job stops the next of its class as well."""
    if not cls.line:
        return False
    head = cls.line[0][2]
    return head.terms == job.terms and head.limit_ms == job.limit_ms


def _is_elastic(cls: Class) -> bool:
    terms = cls.line[0][2].terms
    return terms is not None and bool(terms.least_gpus)


def _amount(hurdle: Hurdle) -> int:
    return hurdle.amount
