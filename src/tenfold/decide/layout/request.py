"""The inputs of a layout search: the training request and the planning target."""

import numpy as np
from msgspec import Struct

from tenfold.model.facts.shape import ModelShape
from tenfold.model.plan import TrainingJob
from tenfold.physics.arrays import Floats
from tenfold.physics.operations.goodput import Reliability
from tenfold.physics.training.arrays import Accelerator, Plans, Shape
from tenfold.physics.training.calibration import Calibration, Runs, correction
from tenfold.physics.training.names import stack_key, version_family
from tenfold.physics.training.profile import TrainingProfile

SECONDS_PER_HOUR = 3600.0


class TrainRequest(Struct, frozen=True, kw_only=True):
    """A training job with its model looked up and its batch known."""

    job: TrainingJob
    shape: ModelShape
    seq: int
    global_batch: int


class Power(Struct, frozen=True, kw_only=True):
    """What turns accelerator time into energy and carbon."""

    tdp_w: float
    server_overhead: float
    pue: float
    co2_g_per_kwh: float


class PlanningTarget(Struct, frozen=True, kw_only=True):
    """The accelerators a job may use: identical, and on one fabric."""

    accelerator: str
    part: Accelerator
    calibration: Calibration
    stack: str
    gpus: int
    gpus_per_node: int
    scaleup_gpus: int
    nic_bytes_per_s: float
    """Per GPU and direction, inside a leaf."""
    spine_share: float = 1.0
    """Share of that rate beyond a leaf, apart from oversubscription."""
    delays_s: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of a hop inside a leaf, a pod, and beyond, over the usual."""
    nodes_per_leaf: int
    nodes_per_pod: int
    leaf_oversubscription: float
    pod_oversubscription: float
    usd_per_gpu_hour: float
    power: Power
    reliability: Reliability
    checkpoint_bytes_per_s: float
    """Write rate of the checkpoint tier, all writers together."""

    @property
    def profile(self) -> TrainingProfile:
        """The efficiency profile of the stack on this hardware."""
        return self.calibration.profile

    def factor(self, shape: Shape, plans: Plans) -> Floats:
        """Return the correction of step times from published and observed runs."""
        stack = np.array([version_family(stack_key(self.stack))])
        runs = Runs(shape, plans, self.part, stack, np.array([self.accelerator]))
        return correction(self.calibration, runs)

    def oversubscription(self, gpus: int) -> float:
        """Return the oversubscription that a packed job of this size sees."""
        nodes = -(-gpus // self.gpus_per_node)
        if nodes <= self.nodes_per_leaf:
            return 1.0
        if nodes <= self.nodes_per_pod:
            return self.leaf_oversubscription / self.spine_share
        return self.leaf_oversubscription * self.pod_oversubscription / self.spine_share

    def delay_s(self, gpus: int) -> float:
        """Return how much longer than usual a hop takes in a packed job of this size."""
        nodes = -(-gpus // self.gpus_per_node)
        if nodes <= self.nodes_per_leaf:
            return self.delays_s[0]
        return self.delays_s[1 if nodes <= self.nodes_per_pod else 2]

    def usd(self, gpus: float, seconds: float) -> float:
        """Return the cost of GPUs for this many seconds."""
        return gpus * self.usd_per_gpu_hour * seconds / SECONDS_PER_HOUR
