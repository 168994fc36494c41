"""Copies for shadows are bounded in number and in bytes."""

import asyncio
from typing import cast

from multidict import CIMultiDict

from tenfold.gateway.forward.call import Call
from tenfold.gateway.forward.shadow import BODIES_BYTES_MAX, SHADOWS_MAX, Shadows
from tenfold.gateway.forward.upstream import Upstream
from tenfold.gateway.pool.grant import Grant, Target


class Silent:
    """A shadow that never answers."""

    target = Target("s", "http://127.0.0.1:9")
    abandoned = 0

    async def send(self, target: Target, call: Call, timeout_s: float) -> None:
        await asyncio.Event().wait()

    def abandon(self, now_s: float) -> None:
        self.abandoned += 1


def copies(size: int) -> tuple[int, int]:
    """Return how many copies of a body are sent before there are enough, and how many end."""

    async def count() -> tuple[int, int]:
        silent = Silent()
        shadows = Shadows(cast(Upstream, silent))
        call = Call("POST", "/v1/x", CIMultiDict[str](), b"x" * size, is_inference=True)
        sent = 0
        while not shadows.is_full:
            shadows.send(cast(Grant, silent), call, 60)
            sent += 1
        await asyncio.sleep(0)
        await shadows.close()
        assert not shadows.is_full
        return sent, silent.abandoned

    return asyncio.run(count())


def test_copies_are_bounded_in_number():
    assert copies(100) == (SHADOWS_MAX, SHADOWS_MAX)


def test_copies_are_bounded_by_the_bytes_that_they_hold():
    assert copies(32 << 20)[0] == BODIES_BYTES_MAX // (32 << 20)
