"""From a fit to the facts about engines, and from those to the text of their file."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from benchmarks.planner.serving_model import LIMITS, ODD_GROUP, PRIOR, Fit, sigma_of
from benchmarks.planner.serving_rows import DATE, FITTED, TABLES, Rows
from tenfold.model.facts.profiles import EngineProfile
from tenfold.physics.arrays import Floats

HEAD = """\
# What serving engines make of the hardware: shares of measured ceilings, floors in seconds, limits.
# Fitted on published tables by `python -m benchmarks.planner.serving_fit --write`, not by hand;
# a version or an accelerator multiplies the generic row.
# `residual` is the standard deviation of log(predicted / published).
"""
# Fields in the order in which the file shows them; what a row does not say is left out.
ORDER = (
    "name",
    "scope",
    "family",
    "version",
    "accelerator",
    "rows",
    "residual",
    "efficiency",
    "limits",
    "residual_by_mode",
    "residual_unseen",
    "change",
    "aliases",
    "requests",
    "requests_usual",
    "requests_online",
    "gateway_s",
    "attention_dp_from",
    "source",
    "date",
    "evidence",
    "assumed",
    "note",
)
UNSEEN_UNKNOWN = {"version": 0.0, "accelerator": 0.0, "engine": 0.0}


def profiles_of(data: Rows, found: Fit) -> list[EngineProfile]:
    """Return the facts of a fit: generic, the tables' family, its versions, accelerators.

    The spreads of what the fit has not seen are left at zero: leaving it out tells them.
    """
    return [
        _generic(data, found),
        TABLES,
        *_versions(data, found),
        *_accelerators(data, found),
    ]


def in_order(profiles: Iterable[EngineProfile]) -> list[EngineProfile]:
    """Return the rows as the file has them: generic, families with versions, accelerators."""
    rank = ("generic", "family", "accelerator")
    return sorted(profiles, key=lambda p: rank.index("family" if p.scope == "version" else p.scope))


def render(profiles: Sequence[EngineProfile]) -> str:
    """Return the file of these facts."""
    return HEAD + "".join(f"\n[[engine]]\n{_block(profile)}" for profile in profiles)


def figure(value: float, digits: int) -> float:
    """Round as the file shows it, so that the facts in hand are the facts in the file."""
    return float(f"{value:.{digits}g}")


def _generic(data: Rows, found: Fit) -> EngineProfile:
    values = {name: np.exp(log) for name, log in found.names.split(found.x).generic.items()}
    error = found.errors(data)
    sigma = {mode: round(sigma_of(error[data.mode == mode]), 3) for mode in FITTED}
    return EngineProfile(
        name="generic",
        scope="generic",
        rows=len(error),
        efficiency={name: figure(values[name], 4) for name in PRIOR if name != "wave"},
        limits=LIMITS | {"wave": round(float(values["wave"]), 3)},
        residual_by_mode=sigma | {"online": 0.0},
        residual_unseen=UNSEEN_UNKNOWN,
        source=TABLES.source,
        date=DATE,
        evidence="published",
        note="the unseen residuals come from leaving versions and accelerators out whole, and from "
        "what this row makes of three families it was not fitted on",
    )


def _versions(data: Rows, found: Fit) -> list[EngineProfile]:
    release, error = found.names.split(found.x).release, found.errors(data)
    out: list[EngineProfile] = []
    for at, number in enumerate(found.names.releases.tolist()):
        mine = data.release == number
        version = str(data.version[mine][0])
        change = _factors(release, at)
        if number in ODD_GROUP:
            change["odd_group"] = ODD_GROUP[number]
        out.append(
            EngineProfile(
                name=f"{TABLES.name} {version}",
                scope="version",
                family=TABLES.name,
                version=version,
                rows=int(mine.sum()),
                residual=round(sigma_of(error[mine]), 3),
                change=change,
                source="TensorRT-LLM perf-overview",
                date=DATE,
                evidence="published",
            )
        )
    return out


def _accelerators(data: Rows, found: Fit) -> list[EngineProfile]:
    part, error = found.names.split(found.x).part, found.errors(data)
    return [
        EngineProfile(
            name=f"any on {name}",
            scope="accelerator",
            accelerator=name,
            rows=int((data.part == name).sum()),
            residual=round(sigma_of(error[data.part == name]), 3),
            change=_factors(part, at),
            source=TABLES.source,
            date=DATE,
            evidence="published",
        )
        for at, name in enumerate(found.names.parts)
    ]


def _factors(logs: dict[str, Floats], at: int) -> dict[str, float]:
    return {name: round(float(np.exp(log[at])), 4) for name, log in logs.items()}


def _block(profile: EngineProfile) -> str:
    usual = {field.name: field.default for field in msgspec.structs.fields(EngineProfile)}
    lines: list[str] = []
    for name in ORDER:
        value = getattr(profile, name)
        always = name == "gateway_s" and profile.scope == "family"
        if value in ({}, (), "", None) and not always:
            continue
        if value != usual[name] or always:
            lines.append(f"{name} = {_toml(value)}\n")
    return "".join(lines)


def _toml(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        pairs = (f"{_key(key)} = {_toml(inner)}" for key, inner in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(inner) for inner in value)}]"
    assert isinstance(value, int | float), f"{value!r} has no place in a fact"
    return f"{value:.6g}"


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() else f'"{name}"'
