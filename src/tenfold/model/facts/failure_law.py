"""The failure model of nodes: a preset of the facts with all figures filled in.

A preset may leave out what its source does not report; a law has every figure, so failures
can be sampled from it. Every figure can be overridden in the user's own facts.
"""

import msgspec
from msgspec import Struct

from tenfold.model.errors import InputError
from tenfold.model.fleet.facility import FailurePreset


class FailureLaw(Struct, frozen=True, kw_only=True):
    """The rate, inequality, burst size and repair time of node failures."""

    name: str
    faults_per_1000_node_days: float
    frailty_shape: float | None = None
    """Shape of a gamma multiplier of mean 1 on a node's rate; None: all nodes alike."""
    arrival_cv: float = 1.0
    """Spread of the times between faults over their mean; 1 or less: faults come alone."""
    burst_nodes_max: int = 32
    repair_h_median: float = 0.0
    repair_h_mean: float = 0.0
    away_s: float = 900.0
    """How long a fault that needs no repair keeps a node: noticed, then restarted."""
    causes: dict[str, float] = msgspec.field(default_factory=dict)
    transient_causes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    """Fields of the preset that rest on an assumption, not on its source."""

    @property
    def transient_share(self) -> float:
        """Share of the faults that a restart fixes."""
        whole = sum(self.causes.values())
        return sum(self.causes.get(name, 0.0) for name in self.transient_causes) / (whole or 1.0)

    @property
    def away_h_mean(self) -> float:
        """Mean time that a fault keeps a node down."""
        transient = self.transient_share
        return transient * self.away_s / 3_600 + (1.0 - transient) * self.repair_h_mean


NO_FAILURES = FailureLaw(name="none", faults_per_1000_node_days=0.0)
_SHOWN_IF_ASSUMED = (
    "failures_per_1000_node_days",
    "frailty_shape",
    "arrival_cv",
    "burst_nodes_max",
    "repair_h_median",
    "repair_h_mean",
    "transient_causes",
)


def law_of(preset: FailurePreset) -> FailureLaw:
    """Return the law of a preset, or raise an error that names the invalid figure."""
    median, mean = preset.repair_h_median, preset.repair_h_mean
    if median is None or mean is None:
        raise InputError(
            "no-repair-time",
            f"failure preset `{preset.name}` has no repair times",
            "set `repair_h_median` and `repair_h_mean` for it in your own facts",
        )
    wrong = _wrong(preset, median, mean)
    if wrong:
        raise InputError(
            "impossible-failures",
            f"failure preset `{preset.name}` {wrong}",
            f"see `tenfold facts show {preset.name}`; override it in your own facts",
        )
    return FailureLaw(
        name=preset.name,
        faults_per_1000_node_days=preset.failures_per_1000_node_days,
        frailty_shape=preset.frailty_shape,
        arrival_cv=preset.arrival_cv,
        burst_nodes_max=preset.burst_nodes_max,
        repair_h_median=median,
        repair_h_mean=mean,
        away_s=preset.detection_s + preset.restart_s,
        causes=preset.causes,
        transient_causes=preset.transient_causes,
        assumed=tuple(
            field for field in _SHOWN_IF_ASSUMED if preset.evidence_of(field) == "assumption"
        ),
    )


def _wrong(preset: FailurePreset, median: float, mean: float) -> str:
    if not preset.failures_per_1000_node_days >= 0:
        return "has a negative rate"
    if not 0 < median <= mean:
        return f"has a median repair time of {median:g} h and a mean of {mean:g} h"
    if preset.frailty_shape is not None and not preset.frailty_shape > 0:
        return f"has a `frailty_shape` of {preset.frailty_shape:g}; it must be positive"
    if not preset.arrival_cv >= 0:
        return "has a negative `arrival_cv`"
    if preset.burst_nodes_max < 1:
        return f"has bursts of at most {preset.burst_nodes_max} nodes"
    if any(not part >= 0 for part in preset.causes.values()):
        return "has a cause with a negative rate"
    return ""
