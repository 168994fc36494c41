"""A decider without manners: it does all that may be ordered, to see what the worlds make of it.

It starts whoever fits, on any number of GPUs that an elastic job takes, resizes, preempts and
reclaims by a hash of the moment, and promises starts that it does not keep.
"""

from collections.abc import Sequence
from hashlib import blake2b

from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import Action, ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job, Run, Slot, StopCause
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, Millis
from tests.rigs.fits import admits, bound_to

WHY = Reason("restless", sentence="for no reason at all")


class Restless:
    """Decides by dice that the view and the clock throw."""

    name = "restless"

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        self._view = view
        self._now_ms = now_ms
        self._free = {
            node: view.gpus_free[node] for node, state in view.states.items() if state == "up"
        }
        actions: list[Action] = []
        for run in view.running.values():
            if action := self._change(run):
                actions.append(action)
        for job in view.pending.values():
            size = self._size(job)
            if (slots := self._seats(job, size, {})) is not None:
                actions.append(StartJob(job.id, slots))
            elif self._die(job, "promise") == 0 and job.id not in view.reservations and view.nodes:
                promised = (Slot(next(iter(view.nodes)), job.shape.gpus),)
                actions.append(ReserveStart(job.id, promised, now_ms, now_ms))
        waits = len(view.pending) > sum(isinstance(one, StartJob) for one in actions)
        return Decision(actions, Millis(now_ms + 7 * MINUTE) if waits or view.running else None)

    def _die(self, job: Job, what: str, sides: int = 4) -> int:
        text = f"{job.id} {what} {self._now_ms} {self._view.version}".encode()
        return blake2b(text, digest_size=2).digest()[0] % sides

    def _change(self, run: Run) -> Action | None:
        job = run.job
        if run.stopping:
            return None
        if cause := self._cause(job):
            return StopJob(job.id, cause, WHY)
        if run.becoming is None and job.terms is not None and job.terms.least_gpus:
            slots = self._seats(job, self._size(job), {slot.node: slot.gpus for slot in run.slots})
            if slots is not None and self._die(job, "resize") < 2:
                return ResizeJob(job.id, slots, WHY)
        return None

    def _cause(self, job: Job) -> StopCause | None:
        if job.id in self._view.idle and self._die(job, "idle") < 2:
            return "idle"
        past = self._view.past.get(job.id)
        stops = self._die(job, "stop") == 0 and (past is None or past.runs < 6)
        return "preempted" if stops else None

    def _size(self, job: Job) -> int:
        terms = job.terms
        if terms is None or not terms.least_gpus:
            return job.shape.gpus
        return terms.least_gpus + self._die(job, "size", terms.most_gpus - terms.least_gpus + 1)

    def _seats(self, job: Job, gpus: int, own: dict[NodeId, int]) -> tuple[Slot, ...] | None:
        """Take GPUs wherever they are, within one kind of node; None where they are not."""
        view, shape = self._view, job.shape
        kinds: dict[object, list[NodeId]] = {}
        for node_id in dict.fromkeys((*own, *self._free)):
            node = view.nodes[node_id]
            if admits(node, shape) and (
                not shape.accelerators or node.accelerator in shape.accelerators
            ):
                kind = (node.site, node.accelerator, node.gpus, bound_to(node, shape))
                kinds.setdefault(kind, []).append(node_id)
        for names in kinds.values():
            if own and not all(node_id in names for node_id in own):
                continue
            room = [(own.get(one, 0) + self._free.get(one, 0), one) for one in names]
            slots: list[Slot] = []
            for most, node_id in sorted(room, key=lambda each: -each[0]):
                taken = min(most, gpus - sum(slot.gpus for slot in slots))
                if taken > 0:
                    slots.append(Slot(node_id, taken))
            if gpus and sum(slot.gpus for slot in slots) == gpus:
                for slot in slots:
                    more = max(0, slot.gpus - own.get(slot.node, 0))
                    if more:
                        self._free[slot.node] -= more
                return tuple(slots)
        return None
