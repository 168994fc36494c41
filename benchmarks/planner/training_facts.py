"""From a fit to the facts about training stacks, a catalogue that holds them, and their files.

A source left out of a fit is predicted through such a catalogue by `estimate train` itself.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.planner.training_model import VARIANTS, Fitted, anchors_of, fixed_of
from benchmarks.planner.training_rows import H200, Rows
from tenfold.model.facts.catalogue import Catalogue, FactTable
from tenfold.model.facts.profiles import StackCorrection, StackProfile
from tenfold.physics.arrays import Floats
from tenfold.physics.training.calibration import INTERVAL_Z, Anchors
from tenfold.physics.training.coefficients import NAMES, values_of
from tenfold.physics.training.names import stack_key

DATE = "2026-11-15"
DEFAULT_RESIDUAL = 0.25
RESIDUAL_FLOOR = 0.03
# A level with few rows says nothing of its spread.
RESIDUAL_OF_FEW = 0.15
# ruff: noqa: E501 - the heads are lines of the files, as they stand there
STACKS_HEAD = """\
# What training stacks make of the hardware: shares of ceilings, overlaps, floors in seconds.
# Levels: default, family, family@generation, and one version on one generation; the narrowest known one is used.
# Fitted by `python -m benchmarks.planner.training_fit --write`; do not edit by hand.
# `spread` is how unsure each value is; `residual` the error left, both as logarithms.
"""
CORRECTIONS_HEAD = """\
# Corrections near published runs: what the physics and a stack's values leave unexplained there.
# Fitted by `python -m benchmarks.planner.training_fit --write`; do not edit by hand.
# Each row: log2 of hidden, layers, seq, tokens a micro-batch, tp, pp, micro-batches, experts; precision code,
# full recompute, log2 of ep; straggling scale; weight; place of the stack and of the accelerator in the lists above it.
"""


def profiles_of(
    fitted: Fitted, rows: Rows, held: Floats, documented: Sequence[str] = ()
) -> list[StackProfile]:
    """Return a fact for every level that rows stand behind, widest first.

    `held` are held-out log errors of the same rows. `documented` families are added even where no
    row stands behind them: what their documentation says needs none.
    """
    facts = [_profile(fitted, rows, held, "default", ())]
    for level in range(3):
        column = rows.levels[:, level]
        bare = sorted(set(documented) - set(column.tolist())) if level == 0 else []
        facts += [_profile(fitted, rows, held, name, (name,)) for name in bare]
        for name in sorted(set(column.tolist())):
            first = int(np.flatnonzero(column == name)[0])
            keys = tuple(rows.levels[first, : level + 1].tolist())
            facts.append(_profile(fitted, rows, held, name, keys))
    return [*facts, *_variants(facts)]


def _variants(facts: Sequence[StackProfile]) -> list[StackProfile]:
    """Return stacks that are like the narrowest level named for them, but for their memory."""
    known = {fact.name: fact for fact in facts}
    return [
        msgspec.structs.replace(
            known[levels[-1]], name=name, values=known[levels[-1]].values | memory
        )
        for name, (levels, memory) in VARIANTS.items()
        if levels[-1] in known
    ]


def _profile(
    fitted: Fitted, rows: Rows, held: Floats, name: str, keys: tuple[str, ...]
) -> StackProfile:
    family = keys[0] if keys else "default"
    mask = _behind(rows, keys)
    values = dict(zip(NAMES, values_of(fitted.theta(keys)).tolist(), strict=True))
    sources = sorted(set(rows.source[mask].tolist())) if keys else ["all sources"]
    spread = zip(NAMES, fitted.spread(keys).tolist(), strict=True)
    return StackProfile(
        name=name,
        family=family,
        rows=int(mask.sum()),
        residual=residual_of(held[mask]) if keys else DEFAULT_RESIDUAL,
        values={key: _figure(value, 6) for key, value in (values | fixed_of(family)).items()},
        spread={key: _figure(value, 4) for key, value in spread},
        source="; ".join(sources) or "documentation of the family",
        date=DATE,
        evidence="measured" if sources == [H200] else "published",
    )


def _behind(rows: Rows, keys: tuple[str, ...]) -> NDArray[np.bool_]:
    if not keys:
        return np.ones(len(rows), bool)
    return rows.levels[:, len(keys) - 1] == keys[-1]


def residual_of(log_errors: Floats) -> float:
    """Return the width that an 80% interval needs, from held-out errors."""
    if len(log_errors) < 4:
        return RESIDUAL_OF_FEW
    width = float(np.quantile(np.abs(log_errors), 0.8)) / INTERVAL_Z
    return round(max(width, RESIDUAL_FLOOR), 4)


def corrections_of(fitted: Fitted, rows: Rows) -> list[StackCorrection]:
    """Return what residuals of the rows add near them, per family and generation."""
    return [_correction(name, kept) for name, kept in anchors_of(fitted, rows).items()]


def _correction(name: str, kept: Anchors) -> StackCorrection:
    traits = kept.traits
    stacks, parts = sorted(set(traits.stack.tolist())), sorted(set(traits.part.tolist()))
    at_stack = [float(stacks.index(one)) for one in traits.stack.tolist()]
    at_part = [float(parts.index(one)) for one in traits.part.tolist()]
    columns = (traits.features, traits.scale, kept.weights, at_stack, at_part)
    points = np.column_stack(columns).tolist()
    return StackCorrection(
        name=name,
        stacks=tuple(stacks),
        accelerators=tuple(parts),
        points=tuple(tuple(_figure(value, 5) for value in point) for point in points),
        source="Residuals of the published runs behind the stack of the same name",
        date=DATE,
        evidence="published",
    )


def _figure(value: float, digits: int) -> float:
    """Round as the file shows it, so that the facts in hand are the facts in the file."""
    return float(f"{value:.{digits}g}")


def catalogue_of(
    catalogue: Catalogue, profiles: Sequence[StackProfile], corrections: Sequence[StackCorrection]
) -> Catalogue:
    """Return the catalogue with these stacks in place of its own."""
    return msgspec.structs.replace(
        catalogue,
        stacks=FactTable("stack", {fact.name: fact for fact in profiles}),
        corrections=FactTable("correction", {fact.name: fact for fact in corrections}),
    )


def render_stacks(profiles: Sequence[StackProfile], rows: Rows) -> str:
    """Return the text of the file of stacks."""
    return STACKS_HEAD + "".join(_stack_block(fact, rows) for fact in profiles)


def _stack_block(fact: StackProfile, rows: Rows) -> str:
    seen = np.any(rows.levels == fact.name, axis=1)
    spellings = sorted({stack_key(row.stack) for row in rows.rows[seen]})
    lines = ["", "[[stack]]", f'name = "{fact.name}"']
    if spellings:
        lines.append(f"# also seen as: {', '.join(spellings)}")
    lines += [
        f'family = "{fact.family}"',
        f"rows = {fact.rows}",
        f"residual = {fact.residual:.4g}",
        f"values = {_table(fact.values)}",
        f"spread = {_table(fact.spread)}",
        *_provenance(fact),
    ]
    return "\n".join(lines) + "\n"


def _table(values: dict[str, float]) -> str:
    return "{ " + ", ".join(f"{name} = {value:.6g}" for name, value in values.items()) + " }"


def _provenance(fact: StackProfile | StackCorrection) -> list[str]:
    return [f'source = "{fact.source}"', f'date = "{fact.date}"', f'evidence = "{fact.evidence}"']


def render_corrections(corrections: Sequence[StackCorrection]) -> str:
    """Return the text of the file of corrections."""
    return CORRECTIONS_HEAD + "".join(_correction_block(fact) for fact in corrections)


def _correction_block(fact: StackCorrection) -> str:
    lines = ["", "[[correction]]", f'name = "{fact.name}"']
    lines += [f"stacks = {_names(fact.stacks)}", f"accelerators = {_names(fact.accelerators)}"]
    lines.append("points = [")
    lines += [f"  [{', '.join(f'{value:.5g}' for value in point)}]," for point in fact.points]
    return "\n".join([*lines, "]", *_provenance(fact)]) + "\n"


def _names(names: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
