"""A hundred people at once: requests against a control plane, and how long each took.

Run as a process of its own, so that the load does not share an interpreter with anything else.
Everybody asks once a second, at a moment of their own, whether or not the last answer was quick:
an answer that is late counts from when the question was due.

    python -m benchmarks.control.load URL TOKEN CLIENTS SECONDS JOB
"""

import asyncio
import json
import sys
from random import Random
from time import perf_counter
from typing import Any

import httpx

from tenfold.client import calls
from tenfold.model.api.fleet import FleetStatus
from tenfold.model.api.jobs import Job, JobPage, Submitted

PERIOD_S = 1.0
SEED = 3
JOB: dict[str, Any] = {"command": ["true"], "gpus_per_node": 1, "cpus_per_node": 0}
KINDS = {"show": 50, "page": 20, "submit": 20, "fleet": 10}
"""Of a hundred requests, how many are of which kind."""


def call_of(kind: str, job_id: str) -> calls.Call[Any]:
    if kind == "show":
        return calls.get(f"/jobs/{job_id}", Job)
    if kind == "page":
        return calls.get("/jobs", JobPage, limit=100)
    if kind == "submit":
        return calls.post("/jobs", Submitted, JOB, calls.new_key())
    return calls.get("/fleet", FleetStatus)


class Crowd:
    def __init__(self, url: str, token: str, job_id: str) -> None:
        self._url, self._job = url, job_id
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.took_ms: dict[str, list[float]] = {kind: [] for kind in KINDS}
        self.failed = 0

    async def one(self, client: httpx.AsyncClient, dice: Random, ends_s: float) -> None:
        due_s = perf_counter() + dice.uniform(0, PERIOD_S)
        while due_s < ends_s:
            await asyncio.sleep(max(0.0, due_s - perf_counter()))
            kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
            call = call_of(kind, self._job)
            try:
                answer = await client.request(
                    call.method,
                    self._url + call.path,
                    params=call.params,
                    content=call.body,
                    headers=self._headers,
                )
            except httpx.HTTPError:
                # No answer within a minute, on a machine that is busy with other things.
                self.failed += 1
            else:
                self.failed += answer.status_code >= 300
            self.took_ms[kind].append((perf_counter() - due_s) * 1_000)
            due_s += PERIOD_S

    async def run(self, clients: int, seconds: float) -> None:
        ends_s = perf_counter() + seconds
        limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
        async with httpx.AsyncClient(limits=limits, timeout=60.0, trust_env=False) as client:
            await asyncio.gather(
                *(self.one(client, Random(SEED + number), ends_s) for number in range(clients))
            )


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def main(words: list[str]) -> int:
    url, token, clients, seconds, job_id = words
    crowd = Crowd(url, token, job_id)
    asyncio.run(crowd.run(int(clients), float(seconds)))
    every = [took for kind in crowd.took_ms.values() for took in kind]
    told = {
        kind: {"count": len(took), "p50": quantile(took, 0.5), "p99": quantile(took, 0.99)}
        for kind, took in (*crowd.took_ms.items(), ("all", every))
    }
    print(json.dumps({"kinds": told, "failed": crowd.failed}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
