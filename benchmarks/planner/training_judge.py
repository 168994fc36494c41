"""Predict rows through the contract with what a catalogue knows, and sum the errors up."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from benchmarks.planner.training_facts import catalogue_of, corrections_of, profiles_of
from benchmarks.planner.training_model import Fitted, fit, held_out_log_error
from benchmarks.planner.training_rows import Rows, pick
from tenfold.model.estimate import TrainEstimate, TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.physics.arrays import Floats
from tenfold.study.estimate.train import estimate_train


@dataclass(frozen=True, slots=True)
class Said:
    """What the contract answered: steps, their 80% intervals, and memory."""

    step_s: Floats
    low_s: Floats
    high_s: Floats
    memory_gib: Floats
    fits: Floats


@dataclass(frozen=True, slots=True)
class Miss:
    """Errors of some rows against what was observed."""

    log: Floats
    inside: Floats

    @property
    def median(self) -> float:
        """The middle error, as a share of the observed step."""
        return float(np.median(np.abs(np.expm1(self.log))))

    @property
    def p90(self) -> float:
        """The error that nine of ten rows stay under."""
        return float(np.quantile(np.abs(np.expm1(self.log)), 0.9))

    @property
    def bias(self) -> float:
        """Where the middle row lies: above zero is too slow."""
        return float(np.expm1(np.median(self.log)))

    @property
    def covered(self) -> float:
        """The share of rows inside their 80% interval."""
        return float(np.mean(self.inside))


def ask(rows: Rows, catalogue: Catalogue, observed: Sequence[TrainRow] = ()) -> Said:
    """Run rows through `estimate train`."""
    found = estimate_train(rows.rows.tolist(), catalogue, observed)
    answers = [answer for answer in found if isinstance(answer, TrainEstimate)]
    assert len(answers) == len(found), "every row read was filled before"
    interval = np.array([answer.interval_s for answer in answers], float)
    column = {
        name: np.array([getattr(answer, name) for answer in answers], float)
        for name in ("step_s", "memory_gib", "fits")
    }
    return Said(low_s=interval[:, 0], high_s=interval[:, 1], **column)


def observed(rows: Rows) -> list[TrainRow]:
    """Return rows as runs to calibrate on."""
    pairs = zip(rows.rows.tolist(), rows.step_s.tolist(), strict=True)
    return [replace(row, step_s=step_s) for row, step_s in pairs]


def miss(said: Said, rows: Rows) -> Miss:
    """Return how far off the answers were."""
    inside = (said.low_s <= rows.step_s) & (rows.step_s <= said.high_s)
    return Miss(np.log(said.step_s / rows.step_s), inside.astype(float))


def join(misses: Sequence[Miss]) -> Miss:
    """Return the errors of several draws as one."""
    return Miss(
        np.concatenate([one.log for one in misses]), np.concatenate([one.inside for one in misses])
    )


@dataclass(slots=True)
class Judge:
    """All rows, what the product ships, and catalogues that never saw a source."""

    rows: Rows
    shipped: Catalogue
    held: Floats = field(init=False)
    _without: dict[str, Catalogue] = field(init=False, default_factory=dict[str, Catalogue])

    def __post_init__(self) -> None:
        self.held = held_out_log_error(self.rows)

    def without(self, source: str) -> Catalogue:
        """Return the catalogue fitted on every row but those of one source.

        Families keep their documented facts; the residuals that set intervals come from the
        remaining rows alone.
        """
        if source not in self._without:
            keep = self.rows.source != source
            kept = pick(self.rows, keep)
            self._without[source] = self._catalogue(fit(kept), kept, self.held[keep])
        return self._without[source]

    def of_source(self, source: str) -> Rows:
        """Return the rows of one source."""
        return pick(self.rows, self.rows.source == source)

    @property
    def sources(self) -> list[str]:
        """All sources by name."""
        return sorted(set(self.rows.source.tolist()))

    def _catalogue(self, fitted: Fitted, rows: Rows, held: Floats) -> Catalogue:
        families = sorted(set(self.rows.levels[:, 0].tolist()))
        profiles = profiles_of(fitted, rows, held, documented=families)
        return catalogue_of(self.shipped, profiles, corrections_of(fitted, rows))
