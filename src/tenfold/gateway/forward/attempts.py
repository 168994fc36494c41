"""Attempts at one request: retries and a hedge, all before the first byte goes to the client."""

import asyncio
import logging

from tenfold.gateway.admit.refusals import RequestRefused
from tenfold.gateway.forward.call import Answer, Call
from tenfold.gateway.forward.upstream import SendFailed, Upstream
from tenfold.gateway.pool.admission import Admission
from tenfold.gateway.pool.grant import Grant

RETRIED = frozenset({429, 500, 502, 503, 504})
ATTEMPTS_MAX = 10
"""Connections that cannot be made use up no retries; this bounds them as well."""

_LOG = logging.getLogger("tenfold.gateway")


class Attempts:
    """Sends admitted requests until one target answers."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def answer(
        self, admission: Admission, granted: Grant, call: Call
    ) -> tuple[Grant, Answer]:
        """Return the first good answer and who gave it; the caller ends that grant.

        Raises `RequestRefused` if there is none.
        """
        loop = asyncio.get_running_loop()
        left = admission.service.spec.retries_max
        for _ in range(ATTEMPTS_MAX):
            try:
                granted, answer = await self._send(admission, granted, call)
            except _Failed as failed:
                granted, why = failed.granted, failed.why
                granted.fail(loop.time(), is_unreachable=why.is_unreachable)
                left -= not why.is_unreachable
                if left < 0 or not self._may_repeat(admission, call, why):
                    raise self._given_up(admission, why) from None
                admission.tried(granted.target.name)
                granted = await admission.place_again(loop.time())
                continue
            if answer.status not in RETRIED or not answer.is_whole or left == 0:
                return granted, answer
            other = self._other(admission, granted, answer, call)
            if other is None:
                return granted, answer
            left, granted = left - 1, other
        raise self._given_up(admission, SendFailed("too many attempts"))

    def _other(
        self, admission: Admission, granted: Grant, answer: Answer, call: Call
    ) -> Grant | None:
        """Return another target after an error status, if one is free; nobody waits for that."""
        if not call.may_repeat:
            return None
        now_s = asyncio.get_running_loop().time()
        admission.tried(granted.target.name)
        other = admission.place_now(now_s)
        if other is None:
            return None
        if answer.status >= 500:
            granted.fail(now_s)
        else:
            # It is busy, not broken.
            granted.abandon(now_s)
        return other

    async def _send(self, admission: Admission, granted: Grant, call: Call) -> tuple[Grant, Answer]:
        service = admission.service
        timeout_s = service.spec.first_byte_timeout_s
        hedge_s = service.spec.hedge_after_s
        if hedge_s and call.may_repeat and not granted.is_away:
            return await self._hedged(admission, granted, call)
        try:
            return granted, await self._upstream.send(granted.target, call, timeout_s)
        except SendFailed as why:
            raise _Failed(granted, why) from None
        except BaseException:
            granted.abandon(asyncio.get_running_loop().time())
            raise

    async def _hedged(
        self, admission: Admission, granted: Grant, call: Call
    ) -> tuple[Grant, Answer]:
        """Send to one target, and to a second if the first is slow; the first answer counts."""
        spec, loop = admission.service.spec, asyncio.get_running_loop()
        tasks = {self._task(granted, call, spec.first_byte_timeout_s): granted}
        try:
            done, _ = await asyncio.wait(tasks, timeout=spec.hedge_after_s)
            if not done:
                second = admission.service.hedge(admission.ticket, granted, loop.time())
                if second is not None:
                    tasks[self._task(second, call, spec.first_byte_timeout_s)] = second
            while True:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                task = done.pop()
                winner = tasks.pop(task)
                why = task.exception()
                if why is None:
                    return winner, task.result()
                failed = why if isinstance(why, SendFailed) else SendFailed(type(why).__name__)
                if not tasks:
                    raise _Failed(winner, failed)
                winner.fail(loop.time(), is_unreachable=failed.is_unreachable)
        finally:
            for task, loser in tasks.items():
                task.cancel()
                task.add_done_callback(_close_late_answer)
                loser.abandon(loop.time())

    def _task(self, granted: Grant, call: Call, timeout_s: float) -> "asyncio.Task[Answer]":
        return asyncio.create_task(self._upstream.send(granted.target, call, timeout_s))

    @staticmethod
    def _may_repeat(admission: Admission, call: Call, why: SendFailed) -> bool:
        return admission.service.spec.retries_max > 0 and (why.is_unreachable or call.may_repeat)

    @staticmethod
    def _given_up(admission: Admission, why: SendFailed) -> RequestRefused:
        admission.service.failed += 1
        name = admission.service.spec.name
        if why.timed_out:
            return RequestRefused(
                "replica_timeout", f"no replica of `{name}` started to respond in time"
            )
        return RequestRefused("replica_failed", f"no replica of `{name}` responded")


class _Failed(Exception):
    """A target gave no usable answer."""

    def __init__(self, granted: Grant, why: SendFailed) -> None:
        super().__init__()
        self.granted = granted
        self.why = why


def _close_late_answer(task: "asyncio.Task[Answer]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().response.close()
