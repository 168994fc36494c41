"""Keep HAProxy in step with the routing state, and the gateway's counters with HAProxy.

Servers and maps follow through the runtime API; only a change of structure reloads. The breakers
are the gateway's own: failures that HAProxy sees open them, and an open one takes the server out.
"""

import asyncio
import logging
from ipaddress import ip_address

from msgspec.structs import replace

from tenfold.clock.wall import now_ms
from tenfold.gateway.haproxy.config import (
    HaproxySettings,
    backend_of,
    config_text,
    map_text,
    server_words,
)
from tenfold.gateway.haproxy.control import (
    BACKEND,
    ControlError,
    Counters,
    Stats,
    ask,
    read_stats,
    worker_pids,
)
from tenfold.gateway.haproxy.plan import HotService, Plan, Server, plan_of, server_name
from tenfold.gateway.haproxy.process import HaproxyProcess, write_private
from tenfold.gateway.pool.pool import ServicePool
from tenfold.gateway.pool.revision import ReplicaState
from tenfold.gateway.pool.service import ServiceState
from tenfold.model.errors import InputError

POLL_S = 0.25
COLD_S = 1.0
"""A service whose queue has emptied stays with the gateway for so long."""
FAILURES_MAX = 20
"""Failures of one replica that count in one reading: a breaker opens long before."""
HEADER_BYTES = 400
"""Of a request, around its prompt."""
_LOG = logging.getLogger("tenfold.gateway")
_GONE = ("No such server", "not found")


class HaproxyDataPlane:
    """HAProxy in front of a gateway."""

    def __init__(self, pool: ServicePool, settings: HaproxySettings, program: str) -> None:
        self._pool = pool
        self._settings = settings
        self.process = HaproxyProcess(program, settings.folder)
        self._plan = Plan()
        """As HAProxy has it."""
        self._leaving: dict[tuple[str, str], None] = {}
        """Servers that are gone from the routing state and may still have requests."""
        self._stopped: dict[tuple[str, str], bool] = {}
        """Servers that get no requests: True for those in maintenance, False for draining ones."""
        self._busy_until_s: dict[str, float] = {}
        self._read: dict[int, Stats] = {}
        """The last reading of each worker."""
        self._carried: dict[tuple[str, str], int] = {}
        """Requests in each server at the last reading."""
        self._carried_tokens: dict[tuple[str, str], int] = {}
        self._addresses: dict[str, str] = {}
        self.reloads = 0

    async def start(self) -> None:
        """Start HAProxy with what the routing state says now."""
        plan = await self._resolved(self._wanted())
        self._write_maps(plan)
        self._plan = _without_draining(plan)
        self._leaving.clear()
        self._stopped.clear()
        await self.process.start(config_text(self._plan, self._settings))

    async def run(self) -> None:
        """Keep everything in step until it is cancelled."""
        while True:
            await asyncio.sleep(POLL_S)
            try:
                if not self.process.is_running:
                    _LOG.error("haproxy ended; it is started again")
                    await self.start()
                await self.sync()
            except (ControlError, InputError) as error:
                _LOG.warning("haproxy: %s", error)

    async def sync(self) -> None:
        """Read the counters, then make HAProxy what the routing state says."""
        now_s = asyncio.get_running_loop().time()
        await self._count(now_s)
        plan = await self._resolved(self._wanted())
        if plan.structure != self._plan.structure:
            await self._reload(plan)
        await self._follow(plan)

    def _wanted(self) -> Plan:
        state = self._pool.state
        if state is None:
            return Plan()
        plan, now_s = plan_of(state, now_ms()), asyncio.get_running_loop().time()
        for name, service in self._pool.services.items():
            if len(service.queue):
                # Whoever waits is served in fair order: that is for the gateway alone.
                self._busy_until_s[name] = now_s + COLD_S
        models = {
            model: name
            for model, name in plan.models.items()
            if self._busy_until_s.get(name, 0.0) <= now_s
        }
        return replace(plan, models=models)

    async def _resolved(self, plan: Plan) -> Plan:
        """Return a plan with addresses for names of hosts; unknown ones are left out."""
        services: list[HotService] = []
        for service in plan.services:
            found: list[tuple[Server, str]] = []
            for server, replica in service.servers:
                address = await self._address(server.host)
                if address:
                    found.append((server._replace(host=address), replica))
            services.append(replace(service, servers=tuple(found)))
        return replace(plan, services=tuple(services))

    async def _address(self, host: str) -> str:
        try:
            return str(ip_address(host))
        except ValueError:
            pass
        if host not in self._addresses:
            try:
                found = await asyncio.get_running_loop().getaddrinfo(host, None)
            except OSError:
                _LOG.warning("haproxy: no address of `%s`", host)
                return ""
            self._addresses[host] = str(sorted(found, key=lambda one: one[0])[0][4][0])
        return self._addresses[host]

    # Settings sent to HAProxy.

    async def _reload(self, plan: Plan) -> None:
        self._write_maps(plan)
        plan = _without_draining(plan)
        await self.process.reload(config_text(plan, self._settings))
        self.reloads += 1
        self._plan = plan
        self._leaving.clear()
        self._stopped.clear()

    def _write_maps(self, plan: Plan) -> None:
        write_private(self._settings.models, map_text(plan.models))
        write_private(self._settings.callers, map_text(plan.callers))

    async def _follow(self, plan: Plan) -> None:
        before = {one.name: one for one in self._plan.services}
        for service in plan.services:
            await self._follow_servers(before[service.name], service)
        await self._follow_map(str(self._settings.callers), self._plan.callers, plan.callers)
        await self._follow_map(str(self._settings.models), self._plan.models, plan.models)
        if (plan.models, plan.callers) != (self._plan.models, self._plan.callers):
            # For the next reload.
            self._write_maps(plan)
        self._plan = plan
        for service in plan.services:
            await self._follow_states(service)
        await self._remove_idle()

    async def _follow_servers(self, before: HotService, service: HotService) -> None:
        backend = backend_of(service.name)
        known = {server.name: server for server, _ in before.servers}
        wanted = {server.name: server for server, _ in service.servers}
        for name in known:
            if name not in wanted and (backend, name) not in self._leaving:
                await self.process.command(f"set server {backend}/{name} state maint", *_GONE)
                self._leaving[backend, name] = None
        for name, server in wanted.items():
            at = f"{backend}/{name}"
            old = known.get(name)
            if (backend, name) in self._leaving:
                # It came back before its last request had ended.
                del self._leaving[backend, name]
                await self.process.command(f"set server {at} state ready")
            elif old is None:
                await self.process.command(
                    f"add server {at} {server_words(server)}", "New server registered"
                )
                await self.process.command(f"enable server {at}")
                continue
            if old is not None and old.weight != server.weight:
                await self.process.command(f"set server {at} weight {server.weight}")
            if old is not None and old.maxconn != server.maxconn:
                await self.process.command(f"set maxconn server {at} {server.maxconn}")

    async def _follow_states(self, service: HotService) -> None:
        """Take out servers that drain or whose breaker is open, and let the others in."""
        backend, replicas = backend_of(service.name), self._replicas(service)
        for server, replica_id in service.servers:
            key = (backend, server.name)
            replica = replicas.get(replica_id)
            is_open = replica is not None and replica.breaker.state == "open"
            wanted = True if is_open else False if server.is_draining else None
            if self._stopped.get(key) is wanted:
                continue
            state = {True: "maint", False: "drain", None: "ready"}[wanted]
            await self.process.command(f"set server {backend}/{server.name} state {state}")
            if wanted is None:
                del self._stopped[key]
            else:
                self._stopped[key] = wanted

    async def _remove_idle(self) -> None:
        for backend, name in list(self._leaving):
            try:
                await self.process.command(f"del server {backend}/{name}", "deleted", *_GONE)
            except ControlError:
                # It still has requests.
                continue
            del self._leaving[backend, name]
            self._stopped.pop((backend, name), None)

    async def _follow_map(self, path: str, before: dict[str, str], after: dict[str, str]) -> None:
        for key in before:
            if key not in after:
                await self.process.command(f"del map {path} {key}", "not found")
        for key, value in after.items():
            if key not in before:
                await self.process.command(f"add map {path} {key} {value}")
            elif before[key] != value:
                await self.process.command(f"set map {path} {key} {value}")

    # What HAProxy has counted.

    async def _count(self, now_s: float) -> None:
        process = self.process
        pids = worker_pids(await ask(process.master, "show proc"))
        totals: Stats = {}
        changes: Stats = {}
        for pid in pids:
            try:
                found = read_stats(await ask(process.master, f"@!{pid} show stat"))
            except ControlError:
                # It has just ended.
                continue
            before = self._read.get(pid, {})
            self._read[pid] = found
            for key, counters in found.items():
                change = counters.minus(before.get(key, Counters()))
                changes[key] = _sum(changes.get(key), change)
                totals[key] = _sum(totals.get(key), counters)
        self._read = {pid: stats for pid, stats in self._read.items() if pid in pids}
        for name, service in self._pool.services.items():
            self._count_service(backend_of(name), service, changes, totals, now_s)

    def _count_service(
        self, backend: str, service: ServiceState, changes: Stats, totals: Stats, now_s: float
    ) -> None:
        whole = changes.get((backend, BACKEND))
        if whole is None:
            return
        of_servers = Counters()
        for revision in service.revisions.values():
            for replica in revision.replicas:
                name = server_name(replica.spec)
                change = changes.get((backend, name), Counters())
                of_servers = _sum(of_servers, change)
                current = totals.get((backend, name), Counters()).current
                self._count_replica((backend, name), service, replica, change, current, now_s)
        estimator = service.estimator
        prompts = max(0, whole.bytes_in - HEADER_BYTES * whole.total)
        service.arrivals += whole.total
        service.arrived_input_tokens += round(prompts / estimator.bytes_per_token) + whole.total
        service.arrived_output_tokens += whole.total * estimator.output_of(0)
        service.retries += whole.retried
        # Errors that no server answered are HAProxy's own: it gave up.
        service.failed += max(0, whole.server_errors - of_servers.server_errors)

    def _count_replica(
        self,
        key: tuple[str, str],
        service: ServiceState,
        replica: ReplicaState,
        change: Counters,
        current: int,
        now_s: float,
    ) -> None:
        before = self._carried.get(key, 0)
        failures = change.failed_connections + change.failed_answers + change.server_errors
        ended = max(0, change.total - (current - before))
        good = max(0, ended - failures)
        estimator = service.estimator
        tokens = round(current * (estimator.input_tokens + estimator.output_tokens))
        more = current - before, tokens - self._carried_tokens.get(key, 0)
        self._carried[key], self._carried_tokens[key] = current, tokens
        service.carried(replica, more, ended, min(failures, ended), now_s)
        breaker = replica.breaker
        for _ in range(min(failures, FAILURES_MAX)):
            if breaker.fail(now_s, is_unreachable=change.failed_connections > 0):
                service.breaker_opened(replica)
        if good and breaker.succeed(now_s):
            service.breaker_closed(replica)

    def _replicas(self, service: HotService) -> dict[str, ReplicaState]:
        state = self._pool.services.get(service.name)
        revision = None if state is None else state.revisions.get(service.revision)
        return {} if revision is None else {one.spec.id: one for one in revision.replicas}


def _without_draining(plan: Plan) -> Plan:
    """Return a plan without servers that get no new requests: a new worker needs none of them."""
    return replace(
        plan,
        services=tuple(
            replace(one, servers=tuple(each for each in one.servers if not each[0].is_draining))
            for one in plan.services
        ),
    )


def _sum(one: Counters | None, other: Counters) -> Counters:
    if one is None:
        return other
    return Counters(*(a + b for a, b in zip(one, other, strict=True)))
