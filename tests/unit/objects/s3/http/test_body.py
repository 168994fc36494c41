"""Bodies hand out whole blocks, pause the socket when they are full, and lose no byte."""

import asyncio
import os
import random

import pytest

from tenfold.objects.s3.http.body import BLOCK_BYTES, BUFFERED_MAX, Body, BodyFailed


class Flow:
    """Notes what a body tells its connection."""

    def __init__(self) -> None:
        self.asked = 0
        self.paused: list[bool] = []

    def wants_body(self) -> None:
        self.asked += 1

    def pause(self, is_paused: bool) -> None:
        self.paused.append(is_paused)


@pytest.mark.parametrize("seed", range(5))
def test_all_bytes_come_out_in_order_and_in_whole_blocks(seed: int):
    draw = random.Random(seed)
    data = os.urandom(5 * BLOCK_BYTES + draw.randrange(BLOCK_BYTES))
    body = Body(Flow(), len(data))

    async def scenario() -> list[bytes]:
        at = 0
        while at < len(data):
            size = draw.choice([1, 70_000, 262_144, BLOCK_BYTES, 3 * BLOCK_BYTES])
            body.feed(data[at : at + size])
            at += size
        body.finish()
        blocks: list[bytes] = []
        while block := await body.read():
            blocks.append(block)
        return blocks

    blocks = asyncio.run(scenario())
    assert b"".join(blocks) == data
    assert {len(block) for block in blocks[:-1]} == {BLOCK_BYTES}


def test_a_full_body_pauses_the_socket_until_it_is_read():
    flow = Flow()
    body = Body(flow, None)

    async def scenario() -> None:
        body.feed(bytes(BUFFERED_MAX))
        assert flow.paused == [True]
        await body.read()
        assert flow.paused == [True]
        await body.read()
        assert flow.paused == [True, False]
        assert flow.asked == 1

    asyncio.run(scenario())


def test_a_body_that_fails_says_why_once_its_reader_waits():
    body = Body(Flow(), 10)

    async def scenario() -> None:
        reading = asyncio.create_task(body.read())
        await asyncio.sleep(0)
        body.fail(BodyFailed("IncompleteBody", "gone"))
        with pytest.raises(BodyFailed, match="gone"):
            await reading

    asyncio.run(scenario())
