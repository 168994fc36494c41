"""Thousands of slow streams at a time for minutes: no token is lost or reordered, nothing grows.

    .venv/bin/python -m benchmarks.gateway.soak --streams 1000 --minutes 10

Each stream has its own prompt, and the words that a replica answers follow from the prompt, so
the hash of every stream is known beforehand. Memory and descriptors of the gateway are read from
the outside every few seconds.
"""

import argparse
import asyncio
import json
import sys
from hashlib import sha256
from statistics import mean
from time import monotonic
from typing import Any

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from tests.rigs.gateway import GatewayProcess, chat_service, state_of
from tests.rigs.openai_replica import ReplicaProcess, expected_text

TOKENS_PER_S = 2.0
PAUSE_S = 5.0
MIB = 1 << 20
GROWTH_MIB_MAX = 16
"""Of the gateway's memory, from the mean of the second quarter to that of the last."""


class Outcome:
    """What became of all streams."""

    def __init__(self) -> None:
        self.right = 0
        self.wrong: list[str] = []
        self.tokens = 0


async def stream(session: ClientSession, url: str, text: str, tokens: int, out: Outcome) -> None:
    messages = [{"role": "user", "content": text}]
    body = {"model": "stub", "messages": messages, "max_tokens": tokens, "stream": True}
    said, rest = sha256(), b""
    try:
        async with session.post(f"{url}/v1/chat/completions", json=body) as answer:
            async for part in answer.content.iter_any():
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    if not line.startswith(b"data: {"):
                        continue
                    event: dict[str, Any] = json.loads(line[6:])
                    word = event["choices"][0]["delta"].get("content", "")
                    out.tokens += bool(word)
                    said.update(word.encode())
    except Exception as error:
        out.wrong.append(f"{text}: {type(error).__name__}: {error}")
        return
    if said.hexdigest() == sha256(expected_text(messages, tokens).encode()).hexdigest():
        out.right += 1
    else:
        out.wrong.append(f"{text}: the text differs")


async def load(url: str, streams: int, seconds: float, out: Outcome) -> None:
    """Keep so many streams open; each is a minute long, and begins at another time."""
    tokens, ends = int(60 * TOKENS_PER_S), monotonic() + seconds

    async def one(number: int, session: ClientSession) -> None:
        # They begin over a minute, so that they do not end together.
        first = max(1, round(tokens * (number % 60 + 1) / 60))
        turn = 0
        while monotonic() < ends:
            await stream(
                session, url, f"stream {number} turn {turn}", tokens if turn else first, out
            )
            turn += 1

    connector = TCPConnector(limit=0)
    async with ClientSession(connector=connector, timeout=ClientTimeout(total=None)) as session:
        await asyncio.gather(*(one(number, session) for number in range(streams)))


def soak(streams: int, minutes: float) -> int:
    options = ("--tokens-per-s", str(TOKENS_PER_S))
    replicas = [ReplicaProcess(*options) for _ in range(2)]
    front = GatewayProcess(state_of(chat_service([one.url for one in replicas])))
    out, seen = Outcome(), list[tuple[float, float, int, int]]()

    async def watch() -> None:
        began = monotonic()
        while True:
            await asyncio.sleep(PAUSE_S)
            open_now = (await asyncio.to_thread(front.service)).outstanding_requests
            seen.append(
                (monotonic() - began, front.rss_bytes() / MIB, front.descriptors(), open_now)
            )
            if len(seen) % 6 == 0:
                at, rss, descriptors, open_now = seen[-1]
                print(
                    f"{at:5.0f} s  {rss:6.1f} MiB {descriptors:5} descriptors  {open_now:4} streams"
                    f"  {out.right:6} right  {len(out.wrong)} wrong",
                    flush=True,
                )

    async def all_of_it() -> None:
        watching = asyncio.create_task(watch())
        await load(front.url, streams, minutes * 60, out)
        watching.cancel()

    try:
        cpu = front.cpu_s()
        asyncio.run(all_of_it())
        cpu = front.cpu_s() - cpu
        counted = front.service()
    finally:
        front.close()
        for one in replicas:
            one.close()
    # Those in the middle, while all streams are open.
    full = [row for row in seen if row[3] >= 0.95 * streams]
    quarter = max(1, len(full) // 4)
    growth = mean(row[1] for row in full[-quarter:]) - mean(
        row[1] for row in full[quarter : 2 * quarter]
    )
    descriptors = [row[2] for row in full[quarter:]]
    print(f"{out.right} streams right, {len(out.wrong)} wrong, {out.tokens:,} tokens")
    print(f"memory: {full[quarter][1]:.1f} MiB, {growth:+.1f} MiB from second to last quarter")
    print(f"descriptors: {min(descriptors)} to {max(descriptors)}")
    print(f"CPU: {1e6 * cpu / max(1, out.tokens):.0f} us per token")
    print(f"gateway: {counted.ended} ended, {counted.failed} failed, {counted.retries} retries")
    for wrong in out.wrong[:10]:
        print(f"wrong: {wrong}")
    held = not out.wrong and growth <= GROWTH_MIB_MAX and max(descriptors) <= 2 * streams + 200
    print("held" if held else "MISSED")
    return 0 if held else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="streams through the gateway for minutes")
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    return soak(arguments.streams, arguments.minutes)


if __name__ == "__main__":
    sys.exit(main())
