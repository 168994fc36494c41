"""The keys of a service, defined once for HTTP bodies, `Client.deploy` and service files.

What a replica needs has the keys of a job file. How requests are routed has the keys of the
routing state. It is stored with the event that records a deployment.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from tenfold.model.job.origin import Origin
from tenfold.model.job.spec import NodeCount
from tenfold.model.service.autoscale import AutoscalePolicy, ReplicaRates, SignalTarget
from tenfold.model.service.routing import HEADER, Hold, Overflow, Percent, Rollback, Seconds
from tenfold.model.strings import (
    Argument,
    Environment,
    FolderName,
    FolderPath,
    Image,
    Name,
)
from tenfold.model.units import SECOND, Millis

REPLICAS_MAX = 1_000
PORT = "{port}"
"""In the command: the port where the replica is to listen. It is in the variable PORT too."""
MODEL = "{model}"
"""In the command: where the model version is. It is in the variable TENFOLD_MODEL_PATH too."""
METRIC = r"^[A-Za-z_:][A-Za-z0-9_:]*$(?!\n)"
HTTP_PATH = r"^/[\x21-\x7e]*$(?!\n)"
Replicas = Annotated[int, Meta(ge=0, le=REPLICAS_MAX)]
Rate = Annotated[float, Meta(gt=0, le=1e9)]
Wait = Annotated[float, Meta(ge=0, le=86_400)]
HttpPath = Annotated[str, Meta(max_length=1_000, pattern=HTTP_PATH)]


class Readiness(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a replica gets requests: while `GET path` answers with a status of 200 to 299."""

    path: HttpPath = "/health"
    interval_s: Annotated[float, Meta(ge=0.05, le=3_600)] = 1.0
    timeout_s: Annotated[float, Meta(ge=0.05, le=3_600)] = 2.0
    failures: Annotated[int, Meta(ge=1, le=1_000)] = 3
    """Consecutive failed probes after which a ready replica gets no requests."""
    start_timeout_s: Seconds = 3_600.0
    """Time from the start of its processes after which a replica that is not ready is replaced."""
    restart_after_s: Wait = 120.0
    """Time after which a replica that is no longer ready is replaced; 0 for never."""


class MetricTarget(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Scale out so that the mean of a metric over the ready replicas stays at a target."""

    metric: Annotated[str, Meta(min_length=1, max_length=200, pattern=METRIC)]
    """A gauge that replicas report at `metrics_path`, such as `vllm:kv_cache_usage_perc`."""
    target: Rate


class Canary(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a new revision gets its share of the requests, in steps."""

    steps: Annotated[tuple[Percent, ...], Meta(min_length=1, max_length=100)] = (5.0, 25.0, 50.0)
    """Percent of the requests; after the last step it is promoted."""
    step_s: Seconds = 300.0
    """How long each step takes, with at least one replica ready."""
    is_promoted: bool = True
    """Whether it is promoted after the last step; otherwise it waits for `service promote`."""
    shadow_percent: Percent = 0.0
    """Before the steps, copies of this share of the requests are sent to it; its answers to them
    are discarded, and the rules of `rollback` apply."""
    shadow_s: Seconds = 300.0
    """For how long, with at least one replica ready."""
    is_blue_green: bool = False
    """Instead of steps, it gets all requests at once, when as many replicas are ready as it needs.
    Those of the revision before stay for `step_s` more, so that going back takes no start."""

    @property
    def first_weight(self) -> float:
        """Percent of the requests that a new revision begins with."""
        return 0.0 if self.shadow_percent or self.is_blue_green else self.steps[0]


class ServiceSpec(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A service that can be deployed."""

    name: FolderName
    command: Annotated[tuple[Argument, ...], Meta(min_length=1, max_length=4_096)]
    """What each replica runs; `{port}` becomes the port where it listens."""
    team: FolderName | None = None
    model: Annotated[str, Meta(max_length=250)] = ""
    """The version in the model registry that replicas serve, such as `chat@prod`; as recorded, a
    number instead of an alias."""
    listens: bool = False
    """Whether the program listens on the port in the variable PORT by itself."""
    image: Image = ""
    env: Environment = field(default_factory=dict[str, str])
    workdir: FolderPath = ""
    origin: Origin | None = None
    """Where it was deployed from; the command line fills it in."""
    # What each replica needs.
    nodes: NodeCount | None = None
    gpus: Annotated[float, Meta(ge=0, le=10_000_000)] | None = None
    gpus_per_node: Annotated[float, Meta(ge=0, le=1_024)] = 0.0
    accelerator: Annotated[tuple[Name, ...], Meta(max_length=20)] = ()
    cpus_per_node: Annotated[float, Meta(ge=0, le=100_000)] | None = None
    memory_gib_per_node: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    needs: Annotated[tuple[Name, ...], Meta(max_length=64)] = ()
    avoids: Annotated[tuple[Name, ...], Meta(max_length=64)] = ()
    priority: Annotated[int, Meta(ge=-1_000_000_000, le=1_000_000_000)] = 0
    preemptible: bool = False
    """Whether the policy may stop replicas for other jobs."""
    grace_s: Seconds = 30.0
    """Time from SIGTERM to SIGKILL."""
    # How many replicas.
    replicas_min: Replicas = 1
    """0 allows scale to zero. With fewer ready replicas, the service is below its minimum."""
    replicas_max: Annotated[int, Meta(ge=1, le=REPLICAS_MAX)] | None = None
    """Replicas of one revision at most; `replicas_min`, or 1, if not set."""
    slots: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """Requests that a replica answers at the same time; further ones wait."""
    prefill_tokens_per_s: Rate | None = None
    """Prompt tokens per second of one request."""
    decode_tokens_per_s: Rate | None = None
    """Generated tokens per second of one request, while all slots are busy."""
    decode_tokens_per_s_alone: Rate | None = None
    """The same while it is alone. With it, `tpot_objective_s` limits the slots that are used."""
    cold_start_s: Seconds = 60.0
    """Assumed time from order to ready, until cold starts were measured."""
    ttft_objective_s: Seconds | None = None
    """A request meets the objective if its first token comes within this time."""
    tpot_objective_s: Seconds | None = None
    """And if its further tokens come within this time each, in the mean of the request."""
    latency_objective_s: Seconds | None = None
    """And if its last token comes within this time."""
    attainment: Annotated[float, Meta(gt=0, lt=1)] = 0.99
    """Share of requests that must meet the objective."""
    zero_after_s: Seconds | None = None
    """Time without a request after which a service that may scale to zero does; None if it is
    learned."""
    concurrency_target: Rate | None = None
    """Requests in service and waiting per replica, at most."""
    requests_per_s_target: Rate | None = None
    """Requests per second and replica, at most."""
    queue_target: Rate | None = None
    """Waiting requests per replica, at most."""
    signals: Annotated[tuple[MetricTarget, ...], Meta(max_length=20)] = ()
    """Metrics of the replicas themselves: use of the KV cache or of GPUs, or any other gauge."""
    metrics_path: HttpPath = "/metrics"
    """Where replicas report metrics in the format of Prometheus; read if there are `signals`."""
    # Whether a replica answers, and how it stops.
    readiness: Readiness = Readiness()
    drain_grace_s: Wait = 30.0
    """How long a draining replica may finish its requests before it is stopped."""
    # How requests get there.
    models: Annotated[tuple[Name, ...], Meta(max_length=100)] = ()
    """Values of `model` in requests; the name of the service if none."""
    teams: Annotated[tuple[FolderName, ...], Meta(max_length=1_000)] = ()
    """Teams that may use it; empty for every team."""
    canary: Canary | None = None
    """Steps of a new revision; without them it gets all requests once it is ready."""
    rollback: Rollback = Rollback()
    hold: Hold = Hold()
    overflow: Annotated[tuple[Overflow, ...], Meta(max_length=20)] = ()
    affinity: Literal["none", "session", "prefix"] = "prefix"
    session_header: Annotated[str, Meta(max_length=100, pattern=HEADER)] = "X-Session-Id"
    retries_max: Annotated[int, Meta(ge=0, le=10)] = 2
    hedge_after_s: Annotated[float, Meta(ge=0, le=3_600)] = 0.0
    first_byte_timeout_s: Seconds = 600.0
    idle_timeout_s: Seconds = 120.0
    key: Annotated[str, Meta(max_length=200)] = ""
    """The name of an API key that the gateway has and the replicas ask for."""

    @property
    def most(self) -> int:
        """Replicas of one revision at most."""
        return max(self.replicas_min, 1) if self.replicas_max is None else self.replicas_max

    @property
    def scales(self) -> bool:
        """Whether the number of replicas follows the load."""
        return self.most > self.replicas_min

    @property
    def rates(self) -> ReplicaRates | None:
        """What a replica does within the objective per token; None if it is not known."""
        slots, prefill, decode = self.slots, self.prefill_tokens_per_s, self.decode_tokens_per_s
        if slots is None or prefill is None or decode is None:
            return None
        rates = ReplicaRates(
            slots=slots,
            prefill_tokens_per_s=prefill,
            decode_tokens_per_s=decode,
            decode_tokens_per_s_alone=self.decode_tokens_per_s_alone,
        )
        return rates.within(self.tpot_objective_s)

    @property
    def policy(self) -> AutoscalePolicy | None:
        """How it is scaled; None if its number of replicas is fixed."""
        rates = self.rates
        if not self.scales or rates is None:
            return None
        signals: list[SignalTarget] = []
        if self.concurrency_target is not None:
            signals.append(SignalTarget(kind="concurrency", target=self.concurrency_target))
        if self.requests_per_s_target is not None:
            signals.append(SignalTarget(kind="requests-per-s", target=self.requests_per_s_target))
        if self.queue_target is not None:
            signals.append(SignalTarget(kind="queue", target=self.queue_target))
        signals += [
            SignalTarget(kind="mean", target=one.target, name=one.metric) for one in self.signals
        ]
        policy = AutoscalePolicy(
            rates=rates,
            replicas_min=self.replicas_min,
            replicas_max=self.most,
            attainment=self.attainment,
            cold_start_ms=millis(self.cold_start_s),
            zero_after_ms=None if self.zero_after_s is None else millis(self.zero_after_s),
            latency_objective_s=self.latency_objective_s,
            signals=tuple(signals),
        )
        # The first token is not later than the last.
        ttft_s = self.ttft_objective_s or self.latency_objective_s
        return policy if ttft_s is None else replace(policy, ttft_objective_s=ttft_s)


def millis(seconds: float) -> Millis:
    """Return seconds as whole milliseconds."""
    return Millis(round(seconds * SECOND))
