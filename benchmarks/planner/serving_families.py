"""Profiles of the families with few rows: PyTorch from decode steps measured on an H200, vLLM and
SGLang from published times between tokens.

Few rows buy few numbers: a ridge-held set for PyTorch, one floor factor for the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from benchmarks.planner.serving_model import sigma_of
from benchmarks.planner.serving_rows import DATE, Published, read_decode_steps, served
from tenfold.model.facts.profiles import EngineProfile
from tenfold.model.facts.shape import ModelShape
from tenfold.model.fleet.hardware import Accelerator
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import decode_s
from tenfold.physics.serving.devices import serving_devices
from tenfold.physics.serving.engines import Catalog, catalog_of, efficiency_of, resolve
from tenfold.physics.serving.kv_cache import ReplicaLayout
from tenfold.physics.serving.precision import precision_widths
from tenfold.physics.serving.replica import Efficiency, Replica
from tenfold.physics.serving.shapes import serving_shapes

MEASURED_ON = "H200-141G-SXM"
PYTORCH = (
    "weights",
    "cache",
    "layer_floor_s",
    "sequence_s",
    "step_floor_s",
    "compute",
    "scan_s",
)
# PyTorch's attention does not split a context over the chip: 90 times the scan of an engine.
PYTORCH_START = np.array([0.0] * (len(PYTORCH) - 1) + [np.log(90.0)])
PYTORCH_SD = np.array([0.3] * (len(PYTORCH) - 1) + [0.5])
FLOORS = ("layer_floor_s", "expert_floor_s", "step_floor_s", "hop_s", "bulk_hop_s")
FACTORS = np.exp(np.linspace(np.log(0.3), np.log(1.5), 33))
FEW_VERSIONS = {"vllm": "0.18", "sglang": "0.5"}
FEW_SIGMA = 0.2
POLL_STEPS = {"sglang": 30.0}
"""From the scripts behind the published closed loops (`--scheduler-recv-interval`)."""
POLL_NOTE = (
    "poll_steps: the InferenceMAX scripts behind its published closed loops start it with "
    "--scheduler-recv-interval 30 on Blackwell; its default is 1"
)
SIGMA_STEP = 0.05


class DecodeSteps:
    """Measured decode steps as arrays."""

    def __init__(self, part: Accelerator) -> None:
        self.rows = read_decode_steps()
        self.shape = serving_shapes([_shape(row) for row in self.rows])
        self.device = serving_devices([part] * len(self.rows))
        self.batch = np.array([row["batch"] for row in self.rows], dtype=float)
        self.context = np.array([row["ctx"] for row in self.rows], dtype=float)
        self.seen_s = np.array([row["ms"] for row in self.rows]) / 1e3

    def errors(self, efficiency: Efficiency) -> Floats:
        one = np.ones(len(self.rows))
        number = precision_widths(["bf16"] * len(self.rows), self.shape)
        widths = (number.widths, number.math_bits, number.expert_math_bits)
        replica = Replica(
            self.shape, self.device, ReplicaLayout(one, one, one), *widths, efficiency
        )
        return np.log(decode_s(replica, self.batch, self.context) / self.seen_s)

    def efficiency(self, catalog: Catalog, engine: str | None) -> Efficiency:
        return efficiency_of([resolve(catalog, engine, MEASURED_ON)] * len(self.rows))


def _shape(row: dict[str, float]) -> ModelShape:
    hidden, heads = int(row["hidden"]), int(row["heads"])
    return ModelShape(
        layers=int(row["layers"]),
        hidden=hidden,
        heads=heads,
        kv_heads=int(row["kv"]),
        head_dim=hidden // heads,
        ffn=int(row["ffn"]),
        vocab=0,
    )


@dataclass(frozen=True, slots=True)
class PytorchFit:
    """PyTorch's decode profile and how well half of it predicts the other half."""

    profiles: list[EngineProfile]
    generic_errors: Floats
    """Of the profile of an engine that is not known."""
    held_out_errors: Floats


def fit_pytorch(steps: DecodeSteps, catalog: Catalog) -> PytorchFit:
    """Fit PyTorch's factors on the profile of an unknown engine on the measured part."""
    base = steps.efficiency(catalog, None)
    even = np.arange(len(steps.rows)) % 2 == 0
    on_even, on_odd = (_least_squares(steps, base, half) for half in (even, ~even))
    held = np.concatenate(
        [
            steps.errors(_changed(base, on_even))[~even],
            steps.errors(_changed(base, on_odd))[even],
        ]
    )
    x = _least_squares(steps, base, np.ones(len(even), dtype=bool))
    change = {name: round(float(np.exp(v)), 4) for name, v in zip(PYTORCH, x, strict=True)}
    source = "measured/h200_kernels.jsonl decode"
    family = EngineProfile(
        name="pytorch",
        scope="family",
        aliases=("pytorchcompile", "torch", "pytorchgraph"),
        residual=0.03,
        gateway_s=0.0,
        source=source,
        date=DATE,
        evidence="measured",
        assumed=("residual", "gateway_s"),
    )
    version = EngineProfile(
        name="pytorch 2.11",
        scope="version",
        family="pytorch",
        version="2.11",
        rows=len(even),
        residual=round(sigma_of(held), 3),
        change=change,
        source=source,
        date=DATE,
        evidence="measured",
    )
    return PytorchFit([family, version], steps.errors(base), held)


def _least_squares(steps: DecodeSteps, base: Efficiency, keep: NDArray[np.bool_]) -> Floats:
    def residuals(x: Floats) -> Floats:
        rows = steps.errors(_changed(base, x))[keep] / SIGMA_STEP
        return np.concatenate([rows, (x - PYTORCH_START) / PYTORCH_SD])

    return least_squares(residuals, PYTORCH_START).x


def _changed(base: Efficiency, x: Floats) -> Efficiency:
    factors = zip(PYTORCH, np.exp(x), strict=True)
    return replace(base, **{name: getattr(base, name) * factor for name, factor in factors})


def fit_few(
    family: str, rows: Sequence[Published], profiles: Sequence[EngineProfile]
) -> list[EngineProfile]:
    """Return a family with one floor factor that its few times between tokens give."""
    mine = few_rows(family, rows)
    scores = [
        np.median(np.abs(tpot_errors(mine, [*profiles, *_few(family, factor, len(mine))])))
        for factor in FACTORS.tolist()
    ]
    best = float(FACTORS[int(np.argmin(scores))])
    # Three or four rows of one benchmark are weak evidence: part of the factor is left out.
    return _few(family, best ** (len(mine) / (len(mine) + 2.0)), len(mine))


def few_rows(family: str, rows: Sequence[Published]) -> list[Published]:
    return [row for row in rows if row.mode == "agg" and row.engine == family]


def tpot_errors(rows: Sequence[Published], profiles: Sequence[EngineProfile]) -> Floats:
    answer = served(rows, catalog_of(profiles))
    return np.log(answer.tpot_s / np.array([row.tpot_s for row in rows]))


def _few(family: str, factor: float, rows: int) -> list[EngineProfile]:
    head = EngineProfile(
        name=family,
        scope="family",
        residual=FEW_SIGMA,
        gateway_s=0.01,
        poll_steps=POLL_STEPS.get(family, 0.0),
        source="aiconfigurator silicon_refs",
        date=DATE,
        evidence="published",
        assumed=("residual", "gateway_s", *(["poll_steps"] if family in POLL_STEPS else [])),
        note=POLL_NOTE if family in POLL_STEPS else "",
    )
    version = msgspec.structs.replace(
        head,
        name=f"{family} {FEW_VERSIONS[family]}",
        scope="version",
        family=family,
        version=FEW_VERSIONS[family],
        rows=rows,
        change=dict.fromkeys(FLOORS, round(factor, 4)),
        gateway_s=0.005,
        poll_steps=0.0,
        assumed=("residual",),
        note="",
    )
    return [head, version]
