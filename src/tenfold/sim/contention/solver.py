"""Share network, storage and rack power among running jobs.

Each start, end or checkpoint recomputes only what it affects. Only a saturated resource
couples the jobs on it, so on a non-blocking fabric a start costs only its own gang. Loads are
integers (bytes per second, milliwatts), so they do not drift.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tenfold.model.ids import JobId
from tenfold.model.job.traffic import Traffic
from tenfold.physics.contention import Flow, max_min, speed, throttled
from tenfold.physics.shared_layers import Gang, SharedLayers, crossings, sending_bytes_per_s

NETWORK, READ, WRITE = 0, 1, 2
Key = tuple[int, int]
"""The number of a job, in the order of starts, and the kind of its stream."""


@dataclass(slots=True)
class _Stream:
    """One flow of one job, and the rate that it has now."""

    key: Key
    job: JobId
    flow: Flow
    loads: tuple[int, ...]
    rate: float


@dataclass(slots=True)
class _JobLoad:
    """The load of one job."""

    number: int
    gang: Gang
    traffic: Traffic
    rack_mw: dict[int, int]
    streams: dict[int, _Stream] = field(default_factory=dict[int, _Stream])
    tier: str = ""
    """Tier of the checkpoint in progress."""
    power: float = 1.0
    """Speed left by the power limits of its racks."""
    speed: float = 1.0


class ContentionSolver:
    """Running jobs, the resources they share, and the resulting speed of each."""

    def __init__(self, layers: SharedLayers) -> None:
        self._layers = layers
        self._limits_mw = [int(watts * 1_000) for watts in layers.rack_w]
        self._load = [0] * len(layers.capacity)
        self._streams: list[dict[Key, _Stream]] = [{} for _ in layers.capacity]
        self._rack_load_mw = [0] * len(layers.rack_w)
        self._rack_jobs: list[dict[JobId, None]] = [{} for _ in layers.rack_w]
        self._jobs: dict[JobId, _JobLoad] = {}
        self._started = 0
        self.writes_changed: dict[JobId, float] = {}
        """Bytes a second of each save whose rate the last call changed; 0 once it is over."""

    def start(self, job_id: JobId, gang: Gang, traffic: Traffic) -> dict[JobId, float]:
        """Add a job; return its speed and that of every job whose speed changed."""
        assert job_id not in self._jobs, f"job `{job_id}` runs already"
        job = _JobLoad(self._started, gang, traffic, self._racks_of(gang, traffic))
        self._started += 1
        self._jobs[job_id] = job
        streams: list[_Stream] = []
        crossed = crossings(self._layers, gang) if traffic.network_bytes_per_s_per_gpu else []
        if crossed:
            sent = sending_bytes_per_s(self._layers, gang)
            rate = min(traffic.network_bytes_per_s_per_gpu, sent)
            streams.append(_stream(job, job_id, NETWORK, rate, crossed))
        if traffic.tier and traffic.read_bytes_per_s_per_gpu:
            uses = [(self._layers.tiers[traffic.tier].resource, _clients(gang))]
            streams.append(_stream(job, job_id, READ, traffic.read_bytes_per_s_per_gpu, uses))
        return {job_id: 1.0} | self._change(job_id, add=streams, rack_sign=1)

    def end(self, job_id: JobId) -> dict[JobId, float]:
        """Take a job away, with its save if one is under way; return the speeds that changed."""
        job = self._jobs[job_id]
        changed = self._change(job_id, drop=list(job.streams.values()), rack_sign=-1)
        del self._jobs[job_id]
        changed.pop(job_id, None)
        return changed

    def burst(self, job_id: JobId, tier: str, on: bool) -> dict[JobId, float]:
        """Begin or end a save to a tier; return the speeds that changed.

        A save takes what its gang can send and the tier can give. Its rate is
        `write_bytes_per_s`, which changes with other jobs: see `writes_changed`.
        """
        job = self._jobs[job_id]
        if not on:
            drop = job.streams.get(WRITE)
            job.tier = ""
            return self._change(job_id, drop=[] if drop is None else [drop])
        assert WRITE not in job.streams, f"job `{job_id}` is saving already"
        storage_tier = self._layers.tiers[tier]
        rate = sending_bytes_per_s(self._layers, job.gang)
        uses = [(storage_tier.resource, _clients(job.gang) * storage_tier.units_per_written)]
        job.tier = tier
        return self._change(job_id, add=[_stream(job, job_id, WRITE, rate, uses)])

    def speed_of(self, job_id: JobId) -> float:
        """Return the speed of a running job, 1 being undisturbed."""
        return self._jobs[job_id].speed

    def write_bytes_per_s(self, job_id: JobId) -> float:
        """Return the rate of a job's save by the whole gang; 0 where it does not save."""
        job = self._jobs[job_id]
        stream = job.streams.get(WRITE)
        return 0.0 if stream is None else stream.rate * _clients(job.gang)

    def contended(self) -> list[str]:
        """Return the names of what is wanted more than there is: resources, then racks."""
        layers = self._layers
        return [name for at, name in enumerate(layers.names) if self._is_saturated(at)] + [
            f"power of rack `{name}`"
            for at, name in enumerate(layers.racks)
            if self._rack_load_mw[at] > self._limits_mw[at]
        ]

    def check(self) -> None:
        """Assert that the state equals a full recomputation of all jobs."""
        recomputed = ContentionSolver(self._layers)
        for job_id, job in self._jobs.items():
            recomputed.start(job_id, job.gang, job.traffic)
        for job_id, job in self._jobs.items():
            if job.tier:
                recomputed.burst(job_id, job.tier, True)
        assert recomputed._load == self._load, "loads are those of the jobs that run"
        assert recomputed._rack_load_mw == self._rack_load_mw, "power is that of the jobs that run"
        for job_id, job in self._jobs.items():
            other = recomputed._jobs[job_id]
            assert job.speed == other.speed, f"job `{job_id}` runs at the speed it should"
            rates = {kind: stream.rate for kind, stream in job.streams.items()}
            fresh = {kind: stream.rate for kind, stream in other.streams.items()}
            assert rates == fresh, f"job `{job_id}` has the rates it should"
        streams = [one for job in self._jobs.values() for one in job.streams.values()]
        whole = max_min([one.flow for one in streams], dict(enumerate(self._layers.capacity)))
        for stream, rate in zip(streams, whole, strict=True):
            # Whole bytes a second decide what is short, so the last ones may differ.
            is_close = abs(stream.rate - rate) <= 1e-6 * rate + 1.0
            assert is_close, f"job `{stream.job}` has its rate among all streams, parted or not"

    def _racks_of(self, gang: Gang, traffic: Traffic) -> dict[int, int]:
        """Return the milliwatts that a gang draws from each rack."""
        power_mw: dict[int, int] = {}
        for node, gpus in gang:
            location = self._layers.nodes[node]
            usual = traffic.power_w_per_gpu
            watts = gpus * (location.power_w_per_gpu if usual is None else usual)
            power_mw[location.rack] = power_mw.get(location.rack, 0) + int(watts * 1_000)
        return power_mw

    def _change(
        self,
        job_id: JobId,
        *,
        add: Sequence[_Stream] = (),
        drop: Sequence[_Stream] = (),
        rack_sign: int = 0,
    ) -> dict[JobId, float]:
        """Add and drop streams of a job, settle what that touches, return changed speeds."""
        affected = {at: self._is_saturated(at) for one in (*add, *drop) for at in one.flow.uses}
        streams = self._jobs[job_id].streams
        self.writes_changed = {}
        for one in drop:
            del streams[one.key[1]]
            for at, load in zip(one.flow.uses, one.loads, strict=True):
                self._load[at] -= load
                del self._streams[at][one.key]
            if one.key[1] == WRITE:
                self.writes_changed[job_id] = 0.0
        for one in add:
            streams[one.key[1]] = one
            for at, load in zip(one.flow.uses, one.loads, strict=True):
                self._load[at] += load
                self._streams[at][one.key] = one
            if one.key[1] == WRITE:
                self.writes_changed[job_id] = self.write_bytes_per_s(job_id)
        slowed = self._recompute(
            [at for at, saturated in affected.items() if saturated or self._is_saturated(at)]
        )
        if rack_sign:
            slowed |= self._apply_power(job_id, rack_sign)
        return self._new_speeds(slowed)

    def _is_saturated(self, at: int) -> bool:
        return self._load[at] > self._layers.capacity[at]

    def _recompute(self, seeds: Sequence[int]) -> dict[JobId, None]:
        """Share the seeds and all they are joined to; return the jobs whose rates changed."""
        changed: dict[JobId, None] = {}
        seen: dict[Key, None] = {}
        for seed in seeds:
            for stream in self._streams[seed].values():
                if stream.key not in seen:
                    self._share_capacity(self._connected_streams(stream, seen), changed)
        return changed

    def _connected_streams(
        self, first: _Stream, seen: dict[Key, None]
    ) -> tuple[list[_Stream], list[int]]:
        """Return the streams that shortages join to one, in order, and what is short."""
        seen[first.key] = None
        found = [first]
        saturated: dict[int, None] = {}
        for stream in found:
            for at in stream.flow.uses:
                if at in saturated or not self._is_saturated(at):
                    continue
                saturated[at] = None
                for key, other in self._streams[at].items():
                    if key not in seen:
                        seen[key] = None
                        found.append(other)
        # The order of starts, so that sums come out the same whichever stream was met first.
        found.sort(key=_key_of)
        return found, list(saturated)

    def _share_capacity(
        self, component: tuple[list[_Stream], list[int]], changed: dict[JobId, None]
    ) -> None:
        streams, saturated = component
        capacity = {at: self._layers.capacity[at] for at in saturated}
        for stream, rate in zip(
            streams, max_min([one.flow for one in streams], capacity), strict=True
        ):
            if rate != stream.rate:
                stream.rate = rate
                changed[stream.job] = None
                if stream.key[1] == WRITE:
                    self.writes_changed[stream.job] = self.write_bytes_per_s(stream.job)

    def _apply_power(self, job_id: JobId, sign: int) -> dict[JobId, None]:
        """Give a job its power or take it back; return the jobs of racks that are or were over."""
        changed: dict[JobId, None] = {job_id: None}
        for rack, power_mw in self._jobs[job_id].rack_mw.items():
            over = self._rack_load_mw[rack] > self._limits_mw[rack]
            self._rack_load_mw[rack] += sign * power_mw
            if sign > 0:
                self._rack_jobs[rack][job_id] = None
            else:
                del self._rack_jobs[rack][job_id]
            if over or self._rack_load_mw[rack] > self._limits_mw[rack]:
                changed |= self._rack_jobs[rack]
        for one in changed:
            job = self._jobs[one]
            job.power = min(
                throttled(self._limits_mw[at], self._rack_load_mw[at]) for at in job.rack_mw
            )
        return changed

    def _new_speeds(self, jobs: dict[JobId, None]) -> dict[JobId, float]:
        changed: dict[JobId, float] = {}
        for job_id in jobs:
            job = self._jobs[job_id]
            new = _speed(job)
            if new != job.speed:
                job.speed = new
                changed[job_id] = new
        return changed


def _speed(job: _JobLoad) -> float:
    waits = [(1.0, job.power)]
    traffic = job.traffic
    for kind, share in ((NETWORK, traffic.network_share), (READ, traffic.read_share)):
        if kind in job.streams:
            stream = job.streams[kind]
            waits.append((share, stream.rate / stream.flow.rate_max))
    return speed(waits)


def _stream(
    job: _JobLoad, job_id: JobId, kind: int, rate: float, uses: Sequence[tuple[int, float]]
) -> _Stream:
    flow = Flow(rate, tuple(at for at, _ in uses), tuple(units for _, units in uses))
    loads = tuple(int(rate * units) for units in flow.units)
    return _Stream((job.number, kind), job_id, flow, loads, rate)


def _clients(gang: Gang) -> float:
    """Return how many read and write: the GPUs, or the nodes of a gang without any."""
    return sum(gpus for _, gpus in gang) or float(len(gang))


def _key_of(stream: _Stream) -> Key:
    return stream.key
