"""People who submit and cancel while the controller dies, and remember what they were told."""

from random import Random
from threading import Event, Thread
from time import sleep

from benchmarks.chaos.plane import Plane
from benchmarks.chaos.witness import Witness
from tenfold.client.client import Client
from tenfold.model.errors import Refused, TenfoldError, Unreachable

BATCH_MOST = 12
ALONE_SHARE = 0.7
"""Of requests: those that hand in one job, and not several."""
PAUSE_S_MOST = 0.08
LOOK_S = 0.01
UNKNOWN = ("answer-lost", "not-known")
CANCELLED_SHARE = 0.03
"""Of jobs of any kind; stubborn ones, which would last, are all cancelled."""


class People(Thread):
    """Hands in jobs up to a number that whoever kills may raise."""

    def __init__(self, plane: Plane, witness: Witness, jobs: int, dice: Random) -> None:
        super().__init__(name="people", daemon=True)
        self._plane, self._witness, self._dice = plane, witness, dice
        self._jobs = jobs
        self._client: Client | None = None
        self.target = 0
        """How many may be acknowledged by now."""
        self.is_over = False
        self.asks = Event()
        """Set while a request is under way, for whoever wants to kill in the middle of one."""
        self.told: list[str] = []
        """Jobs that were acknowledged."""
        self.cancelled: set[str] = set()
        """Jobs whose cancellation was acknowledged."""
        self.asked: set[str] = set()
        """Jobs whose cancellation was asked for, answered or not."""
        self.unanswered = 0
        """Requests that may have been done or not: the answer was lost."""
        self.wrong: list[str] = []
        """Answers that should not be: neither done, nor unreachable, nor too late."""

    def run(self) -> None:
        """Ask until everything is handed in."""
        while len(self.told) < self._jobs and not self.is_over:
            if len(self.told) >= self.target:
                sleep(LOOK_S)
                continue
            most = min(BATCH_MOST, self._jobs - len(self.told))
            alone = self._dice.random() < ALONE_SHARE
            names = self._hand_in(1 if alone else self._dice.randint(1, most))
            self.told += names
            sleep(self._dice.uniform(0, PAUSE_S_MOST))
            for name in names:
                if name.startswith("stubborn") or self._dice.random() < CANCELLED_SHARE:
                    self._cancel(name)

    def _hand_in(self, count: int) -> list[str]:
        jobs = [self._witness.job(self._dice) for _ in range(count)]
        try:
            client = self._reach()
            self.asks.set()
            if count == 1:
                return [client.submit(**jobs[0]).id]
            return [one.id for one in client.submit_many(jobs)]
        except (Unreachable, Refused) as wrong:
            self._away(wrong)
        except TenfoldError as wrong:
            self.wrong.append(f"{wrong.code}: {wrong}")
        finally:
            self.asks.clear()
        return []

    def _cancel(self, name: str) -> None:
        while not self.is_over:
            self.asked.add(name)
            try:
                self._reach().cancel(name)
            except Refused as wrong:
                if wrong.code == "job-not-active":
                    return
                self._away(wrong)
            except Unreachable as wrong:
                self._away(wrong)
            except TenfoldError as wrong:
                self.wrong.append(f"{wrong.code}: {wrong}")
                return
            else:
                self.cancelled.add(name)
                return

    def _reach(self) -> Client:
        if self._client is None:
            self._client = self._plane.client()
        if self._client is None:
            raise Unreachable("no-address", "nobody has left an address yet", "wait")
        return self._client

    def _away(self, wrong: TenfoldError) -> None:
        """Look for the next one. A token of before is refused, for each start makes its own."""
        self.unanswered += wrong.code in UNKNOWN
        if isinstance(wrong, Refused) and wrong.code not in ("unknown-token", "token-revoked"):
            self.wrong.append(f"{wrong.code}: {wrong}")
        if self._client is not None:
            self._client.close()
            self._client = None
        sleep(5 * LOOK_S)
