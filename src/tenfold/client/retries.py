"""When a call is retried, and with which token; shared by both clients.

A call that changes something is sent once, unless it has an idempotency key or never reached the
server. If its response is lost, it may have been carried out: only the caller can decide whether
repeating it is safe. A call that was throttled was not carried out: it is repeated after the time
in `Retry-After`.
"""

from collections.abc import Iterator
from time import monotonic
from typing import Any

from tenfold.client.calls import Call
from tenfold.client.endpoint import Endpoint
from tenfold.client.problems import BAD_TOKEN, NEVER_SENT, NotLeader, Throttled
from tenfold.model.errors import Refused, TenfoldError, Unreachable

TIMEOUT_S = 60.0
"""How long to wait for a response; the control plane itself gives up after half of this."""
PAUSES_S = (0.1, 0.2, 0.4, 0.8)
"""Before the second try of a safe call, the third, and so on."""
OUTAGE_S = 60.0
"""How long waiting and following tolerate an unreachable control plane."""
FAILOVER_S = 30.0
"""How long a call is repeated until one of several control planes leads."""
THROTTLED_S = 60.0
"""How long a call is repeated that is throttled."""
RETRY_AFTER_S_MIN = 0.1
RETRY_AFTER_S_MAX = 30.0
"""A longer `Retry-After` is not followed: the caller should know."""
POLL_S = (0.05, 1.0)
"""The interval between polls of a job: the first, and the longest."""


class CurrentEndpoint:
    """The endpoint in use: of a control plane that restarts on this machine, or of several."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def refresh(self) -> bool:
        """Switch to the new address if there is one; tell whether there was."""
        new = self.endpoint.reloaded()
        if new is not None:
            self.endpoint = new
        return new is not None

    @property
    def failover_s(self) -> float:
        """How long to wait until another control plane is the leader; 0 if there is no other."""
        return FAILOVER_S if self.endpoint.urls else self.endpoint.failover_s

    def fail_over(self, problem: TenfoldError) -> None:
        """Try the next control plane, or the new address of this machine's."""
        leader = problem.leader if isinstance(problem, NotLeader) else ""
        self.endpoint = self.endpoint.next_url(leader) or self.endpoint
        self.refresh()

    def request(self, call: Call[Any], more: dict[str, str] | None = None) -> dict[str, Any]:
        """Return the arguments of a call for the HTTP library."""
        headers = {"Authorization": f"Bearer {self.endpoint.token}", **(more or {})}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if call.key:
            headers["Idempotency-Key"] = call.key
        return {
            "method": call.method,
            "url": self.endpoint.url + call.path,
            "params": call.params,
            "headers": headers,
            "content": call.body,
        }


class Retries:
    """The retries of one call."""

    def __init__(self, current: CurrentEndpoint, call: Call[Any]) -> None:
        self._current = current
        self._is_safe = call.is_safe
        self._pauses = iter(PAUSES_S)
        self._refreshed = False
        self._uncertain: TenfoldError | None = None
        self._throttled_s = 0.0
        self._failing_since_s: float | None = None

    def pause_after(self, problem: TenfoldError) -> float:
        """Return how long to wait before the next try; raise if there is none."""
        is_bad_token = isinstance(problem, Refused) and problem.code in BAD_TOKEN
        if is_bad_token and not self._refreshed:
            # A rejected token means that nothing was done, so any call may be repeated.
            self._refreshed = True
            if self._current.refresh():
                return 0.0
        if isinstance(problem, Throttled):
            return self._after_throttling(problem)
        was_not_done = problem.code == NEVER_SENT or isinstance(problem, NotLeader)
        if not ((self._is_safe or was_not_done) and isinstance(problem, Unreachable)):
            raise problem
        if not was_not_done:
            self._uncertain = problem
        if self._current.failover_s:
            return self._after_failover(problem)
        self._current.refresh()
        pause_s = next(self._pauses, None)
        if pause_s is None:
            # An earlier try may have been carried out, even if the last one never arrived.
            raise self._uncertain or problem
        return pause_s

    def _after_failover(self, problem: TenfoldError) -> float:
        """Ask the next control plane: the one that led may be gone, and another may lead soon."""
        now_s = monotonic()
        if self._failing_since_s is None:
            self._failing_since_s = now_s
        if now_s - self._failing_since_s > self._current.failover_s:
            raise self._uncertain or problem
        self._current.fail_over(problem)
        return next(self._pauses, PAUSES_S[-1])

    def _after_throttling(self, problem: Throttled) -> float:
        pause_s = max(problem.retry_after_s, RETRY_AFTER_S_MIN)
        self._throttled_s += pause_s
        if pause_s > RETRY_AFTER_S_MAX or self._throttled_s > THROTTLED_S:
            raise self._uncertain or problem
        return pause_s


class OutageTolerance:
    """Tolerates an unreachable control plane for a while."""

    def __init__(self, current: CurrentEndpoint, tolerated_s: float = OUTAGE_S) -> None:
        self._current = current
        self._tolerated_s = tolerated_s
        self._since_s: float | None = None

    def answered(self) -> None:
        """Record a response."""
        self._since_s = None

    def failed(self, problem: TenfoldError, now_s: float) -> None:
        """Record a failure; raise it if the outage is too long, or this is not an outage."""
        refreshed = self._current.refresh()
        if self._current.failover_s and isinstance(problem, Unreachable):
            self._current.fail_over(problem)
        if isinstance(problem, Refused) and problem.code in BAD_TOKEN and refreshed:
            return
        if not isinstance(problem, Unreachable):
            raise problem
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s >= self._tolerated_s:
            raise problem


def retry_after_s(problem: TenfoldError) -> float:
    """Return how long the control plane asked to wait; 0 if it did not."""
    wait_s = problem.retry_after_s if isinstance(problem, Throttled) else 0.0
    return min(wait_s, RETRY_AFTER_S_MAX)


def poll_intervals() -> Iterator[float]:
    """Yield how long to wait before each poll of a job, longer and longer."""
    pause_s, most_s = POLL_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 1.5, most_s)
