"""Pass an HTTP request to the inbox of the scheduling loop, and wait for the commit.

The loop answers from its own thread. A request that times out gets `not-known`: it may still be
carried out.
"""

import asyncio
from contextlib import suppress

from tenfold.live.inbox import Answer, Inbox, Request
from tenfold.model.reason import Reason
from tenfold.report.reasons.render import Reader, render
from tenfold.server.problems import Problem, refusal
from tenfold.server.runtime.fair_queue import leave_slot

WAIT_S = 30.0
"""How long a request waits for the loop; a commit takes milliseconds, a long decision seconds."""
STARTING = "starting"
"""The code of a loop that is still reading its journal: requests may wait for it."""


async def call_loop(inbox: Inbox, request: Request, wait_s: float = WAIT_S) -> Answer:
    """Return the loop's answer; raise a problem if it refuses or does not answer."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Answer] = loop.create_future()

    def settle(answer: Answer) -> None:
        if not future.done():
            future.set_result(answer)

    def deliver(answer: Answer) -> None:
        # The server may have shut down meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, answer)

    inbox.put(request, deliver)
    leave_slot()
    try:
        answer = await asyncio.wait_for(future, wait_s)
    except TimeoutError:
        message = f"no answer from the scheduling loop within {wait_s:g} s"
        raise refusal(Reason("not-known", sentence=message)) from None
    if answer.refused is not None:
        raise refusal(answer.refused)
    return answer


def check_writable(trouble: Reason | None) -> None:
    """Raise if the loop is not running, as nothing can be recorded then."""
    if trouble is not None and trouble.code != STARTING:
        message = f"cannot accept changes now: {render(trouble, Reader())}"
        raise Problem(
            503,
            Reason(trouble.code, sentence=message),
            "try again; `/readyz` shows when the control plane is ready",
        )
