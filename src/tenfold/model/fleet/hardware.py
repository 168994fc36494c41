"""Facts about accelerators, links and node shapes."""

from typing import Literal

from tenfold.model.facts.fact import Fact
from tenfold.model.units import Bytes, bytes_from_gib

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8"]
AcceleratorKind = Literal["gpu", "tpu", "npu", "edge"]
LinkKind = Literal["scale-up", "host", "fabric", "wan", "memory", "hop"]


class Accelerator(Fact, frozen=True, kw_only=True):
    """One accelerator part: dense peaks, memory, links and power.

    Peaks are dense (no sparsity) and per device. Vendors print `GB` for what is GiB.
    """

    vendor: str
    kind: AcceleratorKind = "gpu"
    runtime: str
    released: str = ""
    memory_gib: float
    memory_tb_per_s: float
    fp32_tflops: float | None = None
    tf32_tflops: float | None = None
    fp16_tflops: float | None = None
    bf16_tflops: float | None = None
    fp8_tflops: float | None = None
    fp4_tflops: float | None = None
    int8_tops: float | None = None
    bf16_matmul_tflops: float | None = None
    fp8_matmul_tflops: float | None = None
    compute_units: int | None = None
    scaleup_link: str | None = None
    scaleup_gb_per_s: float | None = None
    scaleup_gpus: int = 1
    scaleup_gpus_max: int | None = None
    pcie_gen: int | None = None
    pcie_gb_per_s: float | None = None
    tdp_w: float | None = None
    trains: bool = True
    """Whether its software runs training; inference parts do not."""
    best_for: str = ""

    @property
    def memory_bytes(self) -> Bytes:
        """On-device memory in bytes."""
        return bytes_from_gib(self.memory_gib)

    def peak_tflops(self, precision: Precision) -> float | None:
        """Return the dense peak for a precision, or None if the part does not support it."""
        peaks: dict[Precision, float | None] = {
            "fp32": self.fp32_tflops,
            "tf32": self.tf32_tflops,
            "fp16": self.fp16_tflops,
            "bf16": self.bf16_tflops,
            "fp8": self.fp8_tflops,
            "fp4": self.fp4_tflops,
            "int8": self.int8_tops,
        }
        return peaks[precision]

    @property
    def training_tflops(self) -> float:
        """The dense 16-bit peak that fleet totals add up."""
        return self.bf16_tflops or self.fp16_tflops or self.fp32_tflops or 0.0


class LinkClass(Fact, frozen=True, kw_only=True):
    """A kind of link: one direction of one device or port.

    A `hop` adds latency (a switch, a copy) but does not limit bandwidth.
    """

    kind: LinkKind
    gb_per_s: float = 0.0
    latency_us: float
    rdma: bool = False
    efficiency: tuple[tuple[float, float], ...] = ()
    """Share of `gb_per_s` reached by message size: (bytes, share), rising in bytes."""


class NodeShape(Fact, frozen=True, kw_only=True):
    """A server or cloud instance type; figures are for the whole node."""

    accelerator: str | None = None
    gpus: int
    cpus: int
    memory_gib: float
    provider: str = ""
    nics: int = 1
    nic_gbps: float
    nic_link: str = ""
    gpudirect: bool = False
    scaleup_gpus: int | None = None
    pcie_lanes: int | None = None
    pcie_switched: bool = False
    nvme_drives: int = 0
    nvme_tb: float = 0.0
    nvme_gb_per_s: float = 0.0
    power_kw: float | None = None
    rack_units: float | None = None
