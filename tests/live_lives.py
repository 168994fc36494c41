"""Controllers that live one after the other on one journal, without processes or time."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import run
from tenfold.model.actions import Action, StartJob, StopJob
from tenfold.model.events import Event, JobStarted, JobStopped
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import Millis

Turns = Sequence[tuple[int, Sequence[Event]]]


class Killed(Exception):
    """The controller is gone."""


class Script:
    """A world that says what it was told to; starts are known at once."""

    def __init__(self, turns: Turns, *, dies_after_orders: bool = False) -> None:
        self._turns = iter(turns)
        self._dies = dies_after_orders

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        turn = next(self._turns, None)
        return None if turn is None else (Millis(turn[0]), turn[1])

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        if self._dies:
            raise Killed
        made: list[Event] = []
        for action in actions:
            if isinstance(action, StartJob):
                made.append(JobStarted(now_ms, action.job_id))
            elif isinstance(action, StopJob):
                made.append(JobStopped(now_ms, action.job_id, action.cause, Millis(0)))
        return made


def live(
    path: Path,
    policy: PolicyName | None,
    turns: Turns,
    *,
    decides: PolicyName = "fifo",
    ends: str = "stopped",
) -> None:
    """Let a controller live on a journal. It is stopped, killed, or killed after its orders.

    Without a policy none is noted, as it was before they were; `decides` decides then.
    """
    noted = None if policy is None else Policy(name=policy)
    journal = LiveJournal(str(path), "test", 0, noted)
    restored = journal.restore()
    world = Script(turns, dies_after_orders=ends == "killed after orders")
    decider = placing_decider(Policy(name=policy or decides))
    with suppress(Killed):
        run(world, restored.fleet, [decider], journal=journal, witnesses=journal.witnesses())
    if ends == "stopped":
        journal.close()
    else:
        # What waited for the next commit goes with the process.
        journal.store.close()
