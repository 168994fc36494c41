"""vLLM on the CPU at five loads, beside what the simulator says after calibration on two of them.

    TENFOLD_VLLM=VENV .venv/bin/python -m benchmarks.engines.vllm_cpu

Closed loops of 1, 4, 8, 16 and 32 clients; 32 are twice what runs at a time, so half of them wait
inside the engine. The time of a step, as a base and a part for each sequence, is calibrated on 1
and 16 clients. Rounds go over the loads in turn, because the machine is shared; of each load, the
round with the most tokens per second is kept, which is disturbed the least.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from time import monotonic

import numpy as np
from aiohttp import ClientSession, ClientTimeout, TCPConnector
from msgspec import Struct

from benchmarks.engines.vllm_engine import MODEL, SLOTS, Engine, found
from tenfold.physics.serving.queueing import Service, closed_loop
from tests.rigs.batching_engine import AffineSteps

CLIENTS = (1, 4, 8, 16, 32)
CALIBRATED = (1, 16)
PROMPT, ANSWER = 60, 100
QUEUE_SUM, QUEUE_COUNT = (
    "vllm:request_queue_time_seconds_sum",
    "vllm:request_queue_time_seconds_count",
)


class Seen(Struct):
    """What was measured at one load, or simulated."""

    tokens_per_s: float
    response_s: float
    ttft_s: float
    queue_s: float


async def _ask(session: ClientSession, url: str, number: int) -> tuple[float, float]:
    """Return the time to the first token, and to the last."""
    prompt = " ".join(f"word{number * 7 + at}" for at in range(PROMPT // 3))
    body = {
        "model": MODEL,
        "prompt": prompt,
        "max_tokens": ANSWER,
        "ignore_eos": True,
        "stream": True,
    }
    began_s, first_s = monotonic(), 0.0
    async with session.post(f"{url}/v1/completions", json=body) as answer:
        assert answer.status == 200, await answer.text()
        async for part in answer.content.iter_any():
            if not first_s and part:
                first_s = monotonic() - began_s
    return first_s, monotonic() - began_s


async def _load(url: str, clients: int, requests: int) -> list[tuple[float, float]]:
    numbers, seen = iter(range(requests)), list[tuple[float, float]]()
    timeout = ClientTimeout(total=600)

    async def client(session: ClientSession) -> None:
        for number in numbers:
            seen.append(await _ask(session, url, number))

    async with ClientSession(connector=TCPConnector(limit=0), timeout=timeout) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return seen


def measure(engine: Engine, clients: int) -> Seen:
    """Return what one load measures."""
    requests = max(12, 5 * clients)
    before, began_s = engine.metrics(), monotonic()
    seen = asyncio.run(_load(engine.url, clients, requests))
    took_s, after = monotonic() - began_s, engine.metrics()
    queued = after[QUEUE_COUNT] - before[QUEUE_COUNT]
    return Seen(
        tokens_per_s=requests * ANSWER / took_s,
        response_s=float(np.mean([whole for _, whole in seen])),
        ttft_s=float(np.mean([first for first, _ in seen])),
        queue_s=(after[QUEUE_SUM] - before[QUEUE_SUM]) / max(queued, 1),
    )


def simulated(seen: dict[int, Seen]) -> dict[int, Seen]:
    """Return what the simulator says of every load, calibrated on two."""
    low, high = CALIBRATED
    # All of the response time is taken for steps: what HTTP takes is a part of them here.
    steps_s = [seen[one].response_s / ANSWER for one in CALIBRATED]
    each_s = max(0.0, (steps_s[1] - steps_s[0]) / (high - low))
    steps = AffineSteps(
        *(
            np.array([float(value)])
            for value in (steps_s[0] - each_s * low, each_s, 1e-9, PROMPT, ANSWER, 2_048)
        )
    )
    service = Service(
        input_tokens=steps.input_tokens,
        output_tokens=steps.output_tokens,
        slots=np.array([float(SLOTS)]),
        budget_tokens=steps.budget_tokens,
        outside_s=np.zeros(1),
        stages=np.ones(1),
        length_cv=np.zeros(1),
    )
    found: dict[int, Seen] = {}
    for clients in CLIENTS:
        answer = closed_loop(steps, service, np.array([float(clients)]))
        rate = float(answer.served_qps[0])
        running = min(clients, SLOTS)
        hold_s = ANSWER * float(steps.steady_s(np.array([float(running)]))[0])
        found[clients] = Seen(
            tokens_per_s=rate * ANSWER,
            response_s=clients / rate,
            ttft_s=float(answer.wait.mean_s[0]),
            queue_s=max(0.0, clients / rate - hold_s),
        )
    return found


def run(engine: Engine, rounds: int) -> int:
    """Measure all loads, and print them beside the simulation."""
    asyncio.run(_load(engine.url, 4, 8))
    rows: dict[int, list[Seen]] = {clients: [] for clients in CLIENTS}
    for _ in range(rounds):
        for clients in CLIENTS:
            rows[clients].append(measure(engine, clients))
    seen = {
        clients: max(found, key=lambda one: one.tokens_per_s) for clients, found in rows.items()
    }
    said = simulated(seen)
    print(f"vLLM on the CPU: ready after {engine.cold_start_s:.1f} s, best of {rounds} rounds")
    print(f"{'clients':>8} {'tokens/s: seen, simulated':>30} {'response s':>20} {'queue s':>18}")
    for clients in CLIENTS:
        one, other = seen[clients], said[clients]
        error = other.tokens_per_s / one.tokens_per_s - 1
        note = "calibrated" if clients in CALIBRATED else f"{error:+.0%}"
        print(
            f"{clients:8} {one.tokens_per_s:14.0f} {other.tokens_per_s:8.0f} {note:>10}"
            f" {one.response_s:9.2f} {other.response_s:9.2f}"
            f" {one.queue_s:9.3f} {other.queue_s:9.3f}"
        )
    print(
        json.dumps({str(key): [one.tokens_per_s for one in value] for key, value in rows.items()})
    )
    return 0


def main() -> int:
    """Run the benchmark, if vLLM is here."""
    parser = argparse.ArgumentParser(description="vLLM on the CPU beside the simulator")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--port", type=int, default=23_998)
    options = parser.parse_args()
    home = found()
    if home is None:
        print("skipped: TENFOLD_VLLM names no environment with vllm-cpu")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(home, options.port, Path(folder) / "log")
        try:
            return run(engine, options.rounds)
        finally:
            engine.close()


if __name__ == "__main__":
    sys.exit(main())
