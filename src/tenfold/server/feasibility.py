"""Refuse submissions that can never start on this fleet, and say what would fit.

The check is a convenience before the loop, not a guard: the loop still refuses what can never
start. So a positive answer is kept for good, and only a refusal looks at the newest nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import cast

from msgspec.structs import replace

from tenfold.decide.place.capacity_gate import waits_for_nodes
from tenfold.journal.store import Store, last_seq
from tenfold.model.api.problems import Fault
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Shape
from tenfold.model.job.submission import Submission
from tenfold.model.reason import Reason, joined
from tenfold.model.units import HOUR
from tenfold.report.reasons.render import Reader, render
from tenfold.server.background.follower import FleetSnapshot, Follower
from tenfold.server.problems import ERRORS_MAX, Problem
from tenfold.server.submissions import SubmissionRequest, decode_object
from tenfold.study.why.never import FleetCheck
from tenfold.study.why.would_fit import not_divisible, refusal_findings

KNOWN_MAX = 10_000
"""Kinds of submissions after which the caches start again."""
KEPT_MS = HOUR
"""How long the copy of the fleet is used: windows of a policy move on."""
_Key = tuple[str, str, int | None, bool, bool]


class Feasibility:
    """Checks submissions against an idle, healthy copy of the fleet; thread-safe."""

    def __init__(
        self, store: Store, follower: Follower, trouble: Callable[[], Reason | None]
    ) -> None:
        self._store = store
        self._follower = follower
        self._trouble = trouble
        self._lock = Lock()
        self._check: tuple[int, Mapping[NodeId, Node], FleetCheck] | None = None
        self._feasible: dict[_Key, Shape] = {}
        """Submissions that can start, and their shape once `gpus` is divided over nodes."""
        self._misses = 0

    def has_checked(self, request: SubmissionRequest) -> bool:
        """Return whether all submissions are of kinds that can start as they are."""
        known = self._feasible
        return all(known.get(_key(one)) == one.shape for one in request.submissions)

    def checked(self, request: SubmissionRequest, body: bytes, reader: Reader) -> SubmissionRequest:
        """Return the submissions with `gpus` divided over nodes; raise if one can never start."""
        found, findings = self._all(request, body, reader, refuses=True)
        if findings:
            raise _problem(findings)
        return found

    def advised(
        self, request: SubmissionRequest, body: bytes, reader: Reader
    ) -> tuple[SubmissionRequest, list[str]]:
        """Return the submissions of a dry run, and what would fit if one can never start.

        `gpus` that do not divide over nodes are refused here too: there is no job to try.
        """
        found, findings = self._all(request, body, reader, refuses=False)
        return found, [one.hint for one in findings]

    def _all(
        self, request: SubmissionRequest, body: bytes, reader: Reader, *, refuses: bool
    ) -> tuple[SubmissionRequest, list[Finding]]:
        if self._trouble() is not None:
            return request, []
        snapshot = self._newest()
        if not snapshot.fleet.nodes:
            # Nodes may still be joining; the loop decides.
            return request, []
        with self._lock:
            batch = _Batch(self._fleet_check(snapshot), request, body, reader)
            for place, one in enumerate(request.submissions):
                shape = self._feasible.get(_key(one))
                if shape is None:
                    self._misses += 1
                    shape = batch.shape_of(place, one)
                    if shape is not None and place not in batch.notes:
                        self._remember(one, shape)
                batch.add(place, one, shape)
        if batch.undivided and not refuses:
            raise _problem(batch.undivided)
        found = replace(request, submissions=tuple(batch.submissions), notes=batch.notes)
        return found, [*batch.undivided, *batch.never]

    def _newest(self) -> FleetSnapshot:
        with self._store.reading() as connection:
            newest = last_seq(connection)
        return self._follower.snapshot(newest)

    def _fleet_check(self, snapshot: FleetSnapshot) -> FleetCheck:
        """Return a check against all nodes; a new one where they changed or its caches are full."""
        nodes, kept = snapshot.fleet.nodes, self._check
        is_old = kept is not None and snapshot.at_ms > kept[0] + KEPT_MS
        if kept is None or is_old or self._misses >= KNOWN_MAX or kept[1] != nodes:
            made = FleetCheck(nodes.values(), self._follower.policy, snapshot.at_ms)
            kept = self._check = (snapshot.at_ms, dict(nodes), made)
            self._feasible.clear()
            self._misses = 0
        return kept[2]

    def _remember(self, one: Submission, shape: Shape) -> None:
        self._feasible[_key(one)] = shape
        self._feasible[_key(replace(one, shape=shape))] = shape


class _Batch:
    """The submissions of one request: those that can start, and what is wrong with the others."""

    def __init__(
        self, check: FleetCheck, request: SubmissionRequest, body: bytes, reader: Reader
    ) -> None:
        self._check = check
        self._is_batch = request.is_batch
        self._body = body
        self._reader = reader
        self.submissions: list[Submission] = []
        self.notes: dict[int, str] = {}
        self.undivided: list[Finding] = []
        """`gpus` that do not divide over nodes."""
        self.never: list[Finding] = []

    @cached_property
    def _rows(self) -> list[dict[str, object]]:
        values = decode_object(self._body)
        return cast("list[dict[str, object]]", values["jobs"]) if self._is_batch else [values]

    def shape_of(self, place: int, one: Submission) -> Shape | None:
        """Return the shape of a submission that can start; otherwise note why it cannot."""
        reasons = self._check.never(one)
        if reasons and waits_for_nodes(one, [reason.code for reason in reasons]):
            why = render(joined(reasons), self._reader, one.team)
            self.notes[place] = f"the job will wait for nodes to join: {why}"
            return one.shape
        given, path = self._rows[place].keys(), ("jobs", place) if self._is_batch else ()
        if len(self.undivided) + len(self.never) >= ERRORS_MAX:
            # Only counted: a response lists no more.
            self.never += [_counted(reason) for reason in reasons]
            return None if reasons else self._check.exact_split(one.shape)
        if reasons:
            wrong = refusal_findings(self._check, one, reasons, given, self._reader)
            self.never += [replace(each, path=(*path, *each.path)) for each in wrong]
            return None
        shape = self._check.exact_split(one.shape)
        if shape is None:
            found = not_divisible(self._check, one.shape, given)
            self.undivided.append(replace(found, path=(*path, *found.path)))
        return shape

    def add(self, place: int, one: Submission, shape: Shape | None) -> None:
        """Add a submission with the shape that it gets."""
        if shape is not None and shape != one.shape:
            self.notes[place] = _split_note(shape)
            one = replace(one, shape=shape)
        self.submissions.append(one)


def _counted(reason: Reason) -> Finding:
    return Finding(code=reason.code, message=reason.code, hint="")


def _key(one: Submission) -> _Key:
    terms = one.terms
    may_stop = terms is None or terms.preemptible
    waits = terms is not None and terms.allow_pending is True
    return one.shape.key, one.team, one.limit_ms, may_stop, waits


def _split_note(shape: Shape) -> str:
    each = shape.gpus_per_node or shape.gpus
    nodes = shape.gpus // each
    if nodes == 1:
        return f"`gpus = {shape.gpus}` runs on one node"
    return f"`gpus = {shape.gpus}` runs on {nodes:,} nodes with {each} GPUs each"


def _problem(findings: Sequence[Finding]) -> Problem:
    faults = [
        Fault(field=one.field, code=one.code, message=one.message, hint=one.hint)
        for one in findings
    ]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    message = f"can never start on this fleet: {faults[0].message}{more}"
    return Problem(422, Reason(faults[0].code, sentence=message), faults[0].hint, faults=faults)
