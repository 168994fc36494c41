"""The design to evaluate: a fleet, the GPUs available to a job, and that job.

A ceiling asks how far a design grows, so grounds here are grown beyond the GPUs there
are: more nodes alike, on the same kind of switches.
"""

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.scaling import ScalingCurve, curve, sizes
from tenfold.model.fleet.spec import Fabric, Pool, Tier
from tenfold.model.plan import TrainingJob
from tenfold.physics.fabric import FabricPlan, leaf_size
from tenfold.study.plan.target import ChosenTarget, train_target
from tenfold.study.plan.train import train_request

GROWTH_MAX = 64
GPUS_SEARCHED_MIN = 4_096
GPUS_SEARCHED_MAX = 131_072


class CeilingQuestion(Struct, frozen=True, kw_only=True):
    """What to evaluate. None is filled in from the fleet file or from defaults."""

    model: str | None = None
    accelerator: str | None = None
    feed_bytes_per_s_per_gpu: float | None = None
    streams_per_gpu: float | None = None
    tier: str | None = None
    seq: int | None = None
    global_batch: int | None = None
    failures: str | None = None
    loss_share_max: float = 0.1
    """Share of time that checkpoints and failures may take."""


class Design(Struct, frozen=True, kw_only=True):
    """A fleet as a job sees it. `request` and `curve` are None where no model is named."""

    fleet: OpenFleet
    question: CeilingQuestion
    train: ChosenTarget
    pools: tuple[Pool, ...]
    fabric: Fabric | None
    fabric_plan: FabricPlan | None
    request: TrainRequest | None
    curve: ScalingCurve | None

    @property
    def target(self) -> PlanningTarget:
        """The GPUs there are today."""
        return self.train.target

    @property
    def gpus_today(self) -> int:
        """GPUs of one kind on one fabric."""
        return self.target.gpus

    @property
    def site(self) -> str:
        """Where those GPUs are."""
        return str(self.pools[0].site)

    @property
    def tiers(self) -> list[Tier]:
        """Tiers of the same site."""
        return [tier for tier in self.fleet.spec.tiers if tier.site == self.site]


def design_of(fleet: OpenFleet, question: CeilingQuestion) -> Design:
    """Return a fleet combined with the job to evaluate."""
    train = train_target(fleet, accelerator=question.accelerator, failures=question.failures)
    pools = tuple(pool for pool in fleet.spec.pools if pool.id in train.pools)
    fabric = next((one for one in fleet.spec.fabrics if one.id == pools[0].fabric), None)
    plan = next((one for one in fleet.layout.fabrics if one.name == pools[0].fabric), None)
    bare = Design(
        fleet=fleet,
        question=question,
        train=train,
        pools=pools,
        fabric=fabric,
        fabric_plan=plan,
        request=_request(fleet, question),
        curve=None,
    )
    if bare.request is None:
        return bare
    largest = grown(bare, gpus_searched(bare.target))
    made, _ = curve(bare.request, largest, sizes(largest))
    return replace(bare, curve=made)


def _request(fleet: OpenFleet, question: CeilingQuestion) -> TrainRequest | None:
    model = question.model or fleet.spec.expects.model
    if model is None:
        return None
    job = TrainingJob(model=model, seq=question.seq, global_batch=question.global_batch)
    return train_request(job, fleet.catalogue)


def gpus_searched(target: PlanningTarget) -> int:
    """Return the largest size to check: 64 times today, in whole nodes and a power of two."""
    required = min(max(target.gpus * GROWTH_MAX, GPUS_SEARCHED_MIN), GPUS_SEARCHED_MAX)
    nodes = max(1, required // target.gpus_per_node)
    return (1 << (nodes.bit_length() - 1)) * target.gpus_per_node


def grown(design: Design, gpus: int) -> PlanningTarget:
    """Return the target with more nodes of the same kind, on leaves as in a fabric of that size."""
    target = replace(design.target, gpus=gpus)
    fabric = design.fabric
    if fabric is None:
        return target
    nodes = -(-gpus // target.gpus_per_node)
    leaf = leaf_size(fabric, nodes, design.pools[0].nics_per_node)
    if fabric.kind == "dragonfly":
        # Inside a group every switch reaches every other at full rate.
        leaf *= fabric.switches_per_group
        return replace(target, nodes_per_leaf=leaf, nodes_per_pod=max(nodes, leaf))
    leaves = fabric.leaves_per_pod or fabric.switch_ports
    return replace(target, nodes_per_leaf=leaf, nodes_per_pod=leaf * leaves)
