"""A service under the real controller and a real gateway, in time that passes faster.

Everything between a request and a decision is what runs in production: the gateway is a process,
its counters are read over HTTP, replicas are probed over HTTP, and `ServiceController` makes the
steps. Only the loop is missing, whose part is done by `_carry_out`, and the clock runs `speed`
times as fast. Replicas are servers in this process that become ready a cold start after their
order, so a start takes exactly as long as it should.
"""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from threading import Thread
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web
from msgspec import Struct, field
from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.fleet.services import after_end, after_event, deployed
from tenfold.live.inbox import Answer, Inbox, Request, StepService
from tenfold.model.events import JobCancelRequested, JobSubmitted, ReplicaReady, ServiceScaled
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.service.replica import ReplicaRef
from tenfold.model.service.routing import Hold, RoutingState
from tenfold.model.service.simulated import RequestTrace
from tenfold.model.service.spec import ServiceSpec
from tenfold.model.service.state import ServiceState
from tenfold.model.units import SECOND, Millis
from tenfold.server.background.services.controller import ControllerParts, ServiceController
from tenfold.server.background.services.gateways import Gateways
from tenfold.server.background.services.metrics import ReplicaMetrics
from tenfold.server.background.services.ports import Ports
from tenfold.server.background.services.probes import Prober
from tenfold.server.background.services.routing_board import RoutingBoard
from tests.rigs.gateway import ROOT
from tests.rigs.openai_replica import OpenAiReplica, Speed
from tests.service_builders import TEAM, deployment

TOKEN = "tf_live-service"
TURN_S = 0.01
PULSE_S = 0.05


class LiveOutcome(Struct):
    """What became of the requests and replicas; times are those of the faster clock."""

    targets: list[int] = field(default_factory=list[int])
    """Replicas wanted after each decision that changed them."""
    scaled_ms: list[int] = field(default_factory=list[int])
    replica_ms: int = 0
    """From the order of each replica to its stop, up to the last arrival."""
    statuses: Counter[int] = field(default_factory=Counter[int])
    first_token_ms: list[int] = field(default_factory=list[int])
    late_ms: list[int] = field(default_factory=list[int])
    """How late each request was sent: what the machine could not keep up with."""
    lag_ms: list[int] = field(default_factory=list[int])
    """How late a timer was, regularly: replicas and gateway are then as late with each token."""


class _Machine:
    """The servers of all replicas, each on a port of its own for as long as it exists."""

    def __init__(self, spec: ServiceSpec, speed: float) -> None:
        self._spec, self._speed = spec, speed
        self._runners: dict[int, web.AppRunner] = {}

    async def start(self, port: int, after_s: float) -> None:
        """Serve on a port, from a time on."""
        spec = self._spec
        rates = Speed(
            spec.decode_tokens_per_s or 0.0, spec.prefill_tokens_per_s or 0.0, self._speed
        )
        await asyncio.sleep(after_s)
        runner = web.AppRunner(OpenAiReplica(str(port), spec.slots or 0, rates, spec.name).app())
        self._runners[port] = runner
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, backlog=4_096).start()

    async def stop(self, port: int) -> None:
        """Stop serving there."""
        runner = self._runners.pop(port, None)
        if runner is not None:
            await runner.cleanup()


class _Board(RoutingBoard):
    """Gateways count in real seconds, so what they are told of time is shorter."""

    def __init__(self, now_ms: Callable[[], int], speed: float) -> None:
        super().__init__(now_ms)
        self._speed = speed

    def publish(self, state: RoutingState) -> int:
        services = tuple(
            replace(
                one,
                ttft_objective_s=None
                if one.ttft_objective_s is None
                else one.ttft_objective_s / self._speed,
                hold=Hold(
                    requests_max=one.hold.requests_max, timeout_s=one.hold.timeout_s / self._speed
                ),
            )
            for one in state.services
        )
        tokens = replace(state, team_without_token="anyone", services=services)
        return super().publish(tokens)


class LiveService:
    """One service, its gateway, and its clock."""

    def __init__(self, spec: ServiceSpec, *, speed: float, cold_start_s: float, warm: int) -> None:
        self.outcome = LiveOutcome()
        self._spec, self._speed, self._cold_start_s = spec, speed, cold_start_s
        self._state: ServiceState = deployed(None, deployment(0, "r1", spec))
        self._began_s: float | None = None
        self._number = 0
        self._ordered_ms: dict[JobId, int] = {}
        self._lived: list[tuple[int, int]] = []
        self._running: dict[JobId, Any] = {}
        self._machine = _Machine(spec, speed)
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()
        self._board = _Board(lambda: round(monotonic() * SECOND), speed)
        self._plane_url = self._await(self._serve_routing())
        self._ports = Ports(lambda port: True, 20_000 + os.getpid() % 9_000)
        for _ in range(warm):
            self._order("r1", self._ports.offer(self._used())[0], 0.0)
        self._process, self._url, admin = self._gateway()
        gateways = Gateways(lambda: [admin])
        parts = ControllerParts(
            inbox=cast("Inbox", SimpleNamespace(put=self._carry_out)),
            fleet=lambda: cast("Fleet", self),
            board=self._board,
            tokens=lambda: (),
            teams=(),
            gateways=gateways,
            prober=Prober(),
            metrics=ReplicaMetrics(),
            ports=self._ports,
            host_of=lambda node: "127.0.0.1",
            now_ms=self.now_ms,
        )
        self._controller = ServiceController(parts)
        self._gateways = gateways

    # What a controller asks of a fleet.

    @property
    def services(self) -> dict[str, ServiceState]:
        return {self._spec.name: self._state}

    @property
    def running(self) -> dict[JobId, Any]:
        return self._running

    def now_ms(self) -> int:
        """Return the time; it stands at 0 until the run begins."""
        if self._began_s is None:
            return 0
        return round((monotonic() - self._began_s) * self._speed * SECOND)

    def run(self, trace: RequestTrace) -> LiveOutcome:
        """Send the requests at their times, while the controller works; return what happened."""
        self._be_ready()
        self._began_s = monotonic()
        sending = asyncio.run_coroutine_threadsafe(self._send_all(trace), self._loop)
        pulse = asyncio.run_coroutine_threadsafe(self._pulse(), self._loop)
        while not sending.done():
            self._turn()
        pulse.cancel()
        sending.result()
        end_ms = trace.arrived_ms[-1]
        lived = [*self._lived, *((since, end_ms) for since in self._ordered_ms.values())]
        self.outcome.replica_ms = sum(max(0, min(until, end_ms) - since) for since, until in lived)
        return self.outcome

    def close(self) -> None:
        """End the gateway and the replicas."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        for replica in self._state.replicas:
            self._await(self._machine.stop(replica.port))
        self._gateways.close()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _be_ready(self) -> None:
        """Have the first replicas ready and known to the gateway, as at a warm start."""
        for replica in self._state.replicas:
            url = f"http://127.0.0.1:{replica.port}"
            event = ReplicaReady(Millis(0), replica.id, self._spec.name, url)
            self._state = after_event(self._state, event)
        self._state = replace(self._state, cold_starts_ms=())
        while not self._await(self._is_known()):
            self._turn()

    async def _is_known(self) -> bool:
        """Return whether the gateway knows the service; asking is no request to it."""
        async with (
            ClientSession(timeout=ClientTimeout(total=5)) as session,
            session.get(f"{self._url}/v1/models") as answer,
        ):
            return f'"{self._spec.name}"' in await answer.text()

    def _turn(self) -> None:
        self._controller.once()
        asyncio.run_coroutine_threadsafe(asyncio.sleep(TURN_S), self._loop).result()

    def _await(self, what: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    # The part of the loop: events become the record, orders become replicas.

    def _carry_out(self, request: Request, reply: Callable[[Answer], None]) -> None:
        assert isinstance(request, StepService), "the controller sends nothing else"
        now_ms = Millis(self.now_ms())
        for event in request.step.events:
            self._state = after_event(self._state, event)
            if isinstance(event, ServiceScaled):
                self.outcome.targets.append(event.target)
                self.outcome.scaled_ms.append(now_ms)
        for order in request.step.starts:
            self._order(order.revision, order.port, self._cold_start_s / self._speed)
        for job_id in request.step.stops:
            self._stop(job_id, now_ms)
        reply(Answer())

    def _order(self, revision: str, port: int, after_s: float) -> None:
        self._number += 1
        now_ms, job_id = Millis(self.now_ms()), JobId(f"{self._spec.name}-{self._number}")
        ref = ReplicaRef(service=self._spec.name, revision=revision, port=port)
        job = Job(
            id=job_id, shape=shape_of(1), submitted_ms=now_ms, team=TEAM, terms=Terms(service=ref)
        )
        self._state = after_event(self._state, JobSubmitted(now_ms, job))
        self._ordered_ms[job_id] = now_ms
        slot = SimpleNamespace(node="node-1")
        self._running[job_id] = SimpleNamespace(started_ms=now_ms, stopping=False, slots=[slot])
        starting = self._machine.start(port, after_s)
        if after_s:
            asyncio.run_coroutine_threadsafe(starting, self._loop)
        else:
            self._await(starting)

    def _stop(self, job_id: JobId, now_ms: Millis) -> None:
        port = next(one.port for one in self._state.replicas if one.id == job_id)
        self._state = after_event(self._state, JobCancelRequested(now_ms, job_id))
        self._state = after_end(self._state, job_id, now_ms)
        self._lived.append((self._ordered_ms.pop(job_id), now_ms))
        del self._running[job_id]
        asyncio.run_coroutine_threadsafe(self._machine.stop(port), self._loop)

    def _used(self) -> Sequence[int]:
        return [one.port for one in self._state.replicas]

    # Around it: where the gateway asks for its routing, and who sends the requests.

    async def _serve_routing(self) -> str:
        async def answer(request: web.Request) -> web.Response:
            after = int(request.query["after"])
            until_s = monotonic() + 5.0
            while (found := self._board.newer(after)) is None and monotonic() < until_s:
                await asyncio.sleep(TURN_S)
            return web.Response(status=200 if found else 204, body=found or b"")

        app = web.Application()
        app.router.add_get("/api/v1/routing", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        return f"http://{host}:{port}"

    def _gateway(self) -> tuple["subprocess.Popen[str]", str, str]:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tenfold", "gateway", "run", "--json-log"),
                *("--control-plane", self._plane_url),
                *("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TENFOLD_TOKEN": TOKEN},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None, "a pipe was asked for"
        front, admin = (process.stdout.readline().strip().partition(": ")[2] for _ in range(2))
        return process, front, admin

    async def _pulse(self) -> None:
        while True:
            due_s = monotonic() + PULSE_S
            await asyncio.sleep(PULSE_S)
            self.outcome.lag_ms.append(round((monotonic() - due_s) * self._speed * SECOND))

    async def _send_all(self, trace: RequestTrace) -> None:
        connector = TCPConnector(limit=0)
        async with ClientSession(connector=connector, timeout=ClientTimeout(total=300)) as session:
            tasks: list[asyncio.Task[None]] = []
            rows = zip(trace.arrived_ms, trace.input_tokens, trace.output_tokens, strict=True)
            for at_ms, prompt, answer in rows:
                wait_ms = at_ms - self.now_ms()
                if wait_ms > 0:
                    await asyncio.sleep(wait_ms / SECOND / self._speed)
                self.outcome.late_ms.append(max(0, self.now_ms() - at_ms))
                tasks.append(asyncio.create_task(self._count(session, prompt, answer)))
            await asyncio.gather(*tasks)

    async def _count(self, session: ClientSession, prompt: int, answer: int) -> None:
        self.outcome.statuses[await self._send(session, prompt, answer)] += 1

    async def _send(self, session: ClientSession, prompt: int, answer: int) -> int:
        # Four bytes are about a token, as the replica counts too.
        body = {
            "model": self._spec.name,
            "prompt": "x" * (4 * prompt - 6),
            "max_tokens": answer,
            "stream": True,
        }
        sent_ms = self.now_ms()
        try:
            async with session.post(f"{self._url}/v1/completions", json=body) as response:
                await response.content.readany()
                if self._began_s is not None and response.status == 200:
                    self.outcome.first_token_ms.append(self.now_ms() - sent_ms)
                await response.read()
                return response.status
        except OSError:
            return 0
