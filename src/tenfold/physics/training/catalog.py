"""Find the profile of a stack among the facts.

The most specific level wins: this version on this generation, the family on it, the family
anywhere, the default. A less specific level widens the priors, hence the interval; it is never
an error.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.profiles import StackCorrection, StackProfile
from tenfold.physics.training.arrays import Accelerator, Plans, Shape
from tenfold.physics.training.calibration import (
    Anchors,
    Calibration,
    Prior,
    Runs,
    Similarity,
    Traits,
    calibrate,
    unseen,
)
from tenfold.physics.training.coefficients import NAMES, WIDTHS, coefficients_of, with_coefficients
from tenfold.physics.training.names import family_of, levels_of, stack_key
from tenfold.physics.training.profile import TrainingProfile

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Entry:
    """A profile as found, with how well it is known."""

    start: Prior
    family: str
    notes: tuple[str, ...]


def resolve(catalogue: Catalogue, stack: str | None, part: str) -> Entry:
    """Return the entry for a stack name (any spelling) on an accelerator."""
    key = stack_key(stack or "")
    family = family_of(key, part)
    wide, middle, narrow = levels_of(key, part)
    profiles = {fact.name: fact for fact in catalogue.stacks}
    found = next((name for name in (narrow, middle, wide) if name in profiles), DEFAULT)
    # An unknown family is called `default` too, so that name is asked for first.
    unknown_levels = {DEFAULT: 1, middle: 3, narrow: 4}.get(found, 2)
    like = unseen(Similarity()) if found in (DEFAULT, wide) else Similarity()
    kept = None if family == DEFAULT else catalogue.corrections.find(middle)
    start = _start(profiles[found], unknown_levels, like, kept)
    return Entry(start, family, _notes(stack, found, narrow))


def _start(
    fact: StackProfile, unknown_levels: int, like: Similarity, kept: StackCorrection | None
) -> Prior:
    coefficients = coefficients_of(np.array([fact.values[name] for name in NAMES]))
    spread = np.array([fact.spread[name] for name in NAMES])
    # Each unknown level could have moved the coefficients by its own width.
    variance = spread**2 + (WIDTHS[unknown_levels:] ** 2).sum(0)
    profile = with_coefficients(
        TrainingProfile(**{**fact.values, "sigma": fact.residual}), coefficients
    )
    return Prior(
        profile=profile,
        coefficients=coefficients,
        sigma=np.sqrt(variance),
        like=like,
        anchors=None if kept is None else _anchors(kept),
    )


def uncalibrated(entry: Entry) -> Calibration:
    """Return the entry as a calibration with no observed run."""
    empty = Runs(
        shape=Shape(*(np.zeros(0) for _ in Shape.__slots__)),
        plans=Plans(*(np.zeros(0) for _ in Plans.__slots__)),
        accelerator=Accelerator(*(np.zeros(0) for _ in Accelerator.__slots__)),
        stack=np.zeros(0, dtype=np.str_),
        part=np.zeros(0, dtype=np.str_),
    )
    return calibrate(entry.start, empty, np.zeros(0))


def _anchors(kept: StackCorrection) -> Anchors:
    """Rebuild anchors from their stored columns."""
    rows = np.asarray(kept.points, np.float64)
    width = rows.shape[1] - 4
    stacks, parts = np.asarray(kept.stacks), np.asarray(kept.accelerators)
    traits = Traits(
        features=rows[:, :width],
        scale=rows[:, width],
        stack=stacks[rows[:, width + 2].astype(int)],
        part=parts[rows[:, width + 3].astype(int)],
    )
    return Anchors(traits, rows[:, width + 1])


def _notes(stack: str | None, found: str, narrow: str) -> tuple[str, ...]:
    if stack is None:
        return ("no stack given; using the default profile",)
    if found == DEFAULT:
        return (f"unknown stack `{stack}`: default profile used",)
    versioned = any(letter.isdigit() for letter in stack)
    if found != narrow and (versioned or "@" not in found):
        return (f"no known runs of `{stack}` on this accelerator: profile of `{found}` used",)
    return ()
