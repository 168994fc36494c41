"""Calibrate serving profiles with observed runs: how much faster a stack is than its profile.

Tokens a second and waits do not follow speed in proportion (a load that is met leaves the
rate where it was), so the speed that explains a run is looked for, not divided out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tenfold.model.errors import InputError
from tenfold.model.estimate import ServeRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.shape import ModelShape
from tenfold.model.fleet.hardware import Accelerator
from tenfold.physics.arrays import Floats
from tenfold.physics.network import server_ports
from tenfold.physics.serving.devices import ServingNetwork, serving_devices
from tenfold.physics.serving.engines import (
    Catalog,
    ServingProfile,
    calibrated,
    calibration_factor,
    resolve,
)
from tenfold.physics.serving.serve import RequestedLoad, estimate
from tenfold.physics.serving.shapes import serving_shapes
from tenfold.physics.training.names import generation_of
from tenfold.study.estimate.fill import shape_of

DEFAULT_MODE = "max-throughput"
SPEEDS = (1 / 8, 8.0)
"""No stack differs more from its profile than this; beyond it, the row must be wrong."""
TURNS = 40
MET_SHARE = 0.95
"""A stream served at this share of its demand is not overloaded, so its rate shows no speed."""
OBSERVED = ("output_tokens_per_s", "ttft_s", "tpot_s")
Group = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A row with its names looked up."""

    row: ServeRow
    shape: ModelShape
    part: Accelerator
    profile: ServingProfile
    network: ServingNetwork

    @property
    def group(self) -> Group:
        """The group that an observed run calibrates: an engine on an accelerator generation."""
        family = self.profile.family
        return family.name if family else "generic", generation_of(self.part.name)


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of a group relative to its profile, and the number of observed runs."""

    factor: float
    runs: int

    def of(self, profile: ServingProfile) -> ServingProfile:
        """Return the profile at this speed."""
        return calibrated(profile, self.factor, self.runs)


def resolved(row: ServeRow, catalogue: Catalogue, engines: Catalog) -> Resolved:
    """Return a row with its names looked up, or raise `InputError`."""
    shape = shape_of(row.model, catalogue)
    part = catalogue.accelerators.get(row.accelerator)
    ports = server_ports(part, None, catalogue)
    network = ServingNetwork(
        domain=float(max(part.scaleup_gpus, ports.gpus)),
        bytes_per_s=ports.nics * ports.gbps / ports.gpus / 8 * 1e9,
    )
    return Resolved(row, shape, part, resolve(engines, row.engine, part.name), network)


def load_of(rows: Sequence[ServeRow]) -> RequestedLoad:
    """Return rows as arrays, NaN where a value is not given."""

    def column(name: str) -> Floats:
        values = [getattr(row, name) for row in rows]
        return np.array([np.nan if value is None else float(value) for value in values])

    return RequestedLoad(
        tp=column("tp"),
        pp=column("pp"),
        attention_dp=np.full(len(rows), np.nan),
        input_tokens=column("input_tokens"),
        output_tokens=column("output_tokens"),
        batch=column("batch"),
        qps=column("qps"),
        mode=np.array([row.mode or DEFAULT_MODE for row in rows]),
        precision=tuple(row.precision or "bf16" for row in rows),
        requests=np.array([float(row.requests or np.nan) for row in rows]),
        length_cv=column("length_cv"),
    )


def speeds_of(
    observed: Sequence[ServeRow], catalogue: Catalogue, engines: Catalog
) -> Mapping[Group, Speed]:
    """Return the speed of each group of observed runs; raise `InputError` for impossible ones."""
    groups: dict[Group, list[float]] = {}
    for number, row in enumerate(observed, start=1):
        given = [name for name in OBSERVED if getattr(row, name) is not None]
        if not given:
            raise InputError(
                "missing-key",
                f"observed run {number} has none of `output_tokens_per_s`, `ttft_s`, `tpot_s`",
                "add what the run reached",
                line=number,
            )
        one = resolved(row, catalogue, engines)
        found = [speed for name in given if (speed := _speed(one, name)) is not None]
        if not found:
            raise InputError(
                "run-teaches-nothing",
                f"observed run {number} cannot be used: no speed from 1/8x to 8x of the profile "
                f"explains its {' or '.join(f'`{name}`' for name in given)}",
                "check its units; if the load was met, give `ttft_s` or `tpot_s`",
                line=number,
            )
        groups.setdefault(one.group, []).append(float(np.exp(np.mean(np.log(found)))))
    return {
        group: Speed(calibration_factor(np.array(seen), np.ones(len(seen))), len(seen))
        for group, seen in groups.items()
    }


def _speed(one: Resolved, name: str) -> float | None:
    """Return the speed at which a row matches the observed figure; None if there is none."""
    wanted = float(getattr(one.row, name))
    if name == "output_tokens_per_s" and wanted >= MET_SHARE * _offered(one.row):
        return None
    # Rates grow with speed and waits shrink.
    sign = 1.0 if name == "output_tokens_per_s" else -1.0
    low, high = SPEEDS
    ends = [sign * (_figure(one, name, speed) - wanted) for speed in SPEEDS]
    if not ends[0] < 0.0 < ends[1]:
        return None
    for _ in range(TURNS):
        middle = (low * high) ** 0.5
        below = sign * (_figure(one, name, middle) - wanted) < 0.0
        low, high = (middle, high) if below else (low, middle)
    return (low * high) ** 0.5


def _offered(row: ServeRow) -> float:
    """Return the tokens per second that a stream demands; infinite for other modes."""
    if row.mode != "online" or row.qps is None:
        return np.inf
    return row.qps * (row.output_tokens or 1)


def _figure(one: Resolved, name: str, speed: float) -> float:
    served, _ = estimate(
        load_of([one.row]),
        serving_shapes([one.shape]),
        serving_devices([one.part], [one.network]),
        [calibrated(one.profile, speed, 1)],
    )
    return float(getattr(served, name)[0])
