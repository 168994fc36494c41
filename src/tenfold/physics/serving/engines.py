"""Engine profiles: what a family, a version and an accelerator change about the generic
efficiencies.

A profile is the generic one times two sets of multipliers, so that an unseen version interpolates
between its neighbours, an unseen accelerator runs on its datasheet, and an unseen engine gets the
generic profile, a wider interval and a note.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tenfold.model.facts.profiles import EngineProfile
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import EngineLimits
from tenfold.physics.serving.replica import (
    EFFICIENCY_NAMES,
    FLOOR_NAMES,
    RATE_NAMES,
    Efficiency,
)

_Z_80 = 1.2816
SIGMA_ROW = 0.06
"""Spread of single runs of one stack, as a logarithm."""
SIGMA_STACK = 0.15
"""Spread of stacks around their profile, as a logarithm."""


@dataclass(frozen=True, slots=True)
class EngineFamily:
    """An engine family with its releases in order and the way its published runs are made."""

    name: str
    aliases: tuple[str, ...]
    releases: tuple[float, ...]
    changes: tuple[Mapping[str, float], ...]
    requests: tuple[tuple[float, float, float], ...]
    requests_default: float
    requests_online: float
    gateway_s: float
    poll_steps: float
    """Steps between two looks for new requests in its published closed loops, 0 for every step."""
    sigma_log_extra: float
    """Further spread of a family whose profile rests on few rows."""
    attention_dp_from: float
    """First release that runs mixtures of experts with data parallel attention; infinite for
    never.
    """


@dataclass(frozen=True, slots=True)
class Catalog:
    """All profiles; `catalog_of` builds it from the facts."""

    generic: Mapping[str, float]
    limits: Mapping[str, float]
    sigma: Mapping[str, float]
    sigma_unseen_version: float
    sigma_unseen_accelerator: float
    sigma_unseen_engine: float
    families: tuple[EngineFamily, ...]
    accelerators: Mapping[str, Mapping[str, float]]


def catalog_of(rows: Iterable[EngineProfile]) -> Catalog:
    """Build the catalog from the facts about engines."""
    facts = list(rows)
    generic = next(fact for fact in facts if fact.scope == "generic")
    return Catalog(
        generic=generic.efficiency,
        limits=generic.limits,
        sigma=generic.residual_by_mode,
        sigma_unseen_version=generic.residual_unseen["version"],
        sigma_unseen_accelerator=generic.residual_unseen["accelerator"],
        sigma_unseen_engine=generic.residual_unseen["engine"],
        families=tuple(_family(fact, facts) for fact in facts if fact.scope == "family"),
        accelerators={
            fact.accelerator: fact.change for fact in facts if fact.scope == "accelerator"
        },
    )


@dataclass(frozen=True, slots=True)
class ServingProfile:
    """The profile of an engine for one configuration."""

    values: Mapping[str, float]
    sigma: Mapping[str, float]
    family: EngineFamily | None
    attention_dp: bool
    notes: tuple[str, ...]

    def requests(self, input_tokens: float, output_tokens: float) -> float:
        """Return the length of a flat-out run as this engine's tables make it."""
        if self.family is None:
            return np.inf
        listed = {(row[0], row[1]): row[2] for row in self.family.requests}
        return listed.get((input_tokens, output_tokens), self.family.requests_default)


def resolve(catalog: Catalog, engine: str | None, accelerator: str) -> ServingProfile:
    """Return the profile of an engine such as `TensorRT-LLM 0.17` or `vllm-0.9.1` on an
    accelerator.
    """
    notes: list[str] = []
    family, release = _find(catalog, engine)
    values = dict(catalog.generic) | dict(catalog.limits)
    extra = 0.0
    if family is None:
        unknown = "no engine given" if engine is None else f"unknown engine `{engine}`"
        notes.append(f"{unknown}: generic profile used")
        extra = catalog.sigma_unseen_engine
    elif family.releases:
        if release is None:
            release = float(np.median(family.releases))
            notes.append(f"no version given for `{engine}`: profile of the middle release used")
        if release not in family.releases:
            extra = catalog.sigma_unseen_version
            notes.append(f"no profile for release {release:g} of `{family.name}`: interpolated")
        extra = float(np.hypot(extra, family.sigma_log_extra))
        _apply(values, _between(family, release))
    if accelerator in catalog.accelerators:
        _apply(values, catalog.accelerators[accelerator])
    else:
        extra = float(np.hypot(extra, catalog.sigma_unseen_accelerator))
        notes.append(f"no serving runs known on `{accelerator}`: datasheet and matmul ceiling only")
    sigma = {mode: float(np.hypot(value, extra)) for mode, value in catalog.sigma.items()}
    dp = family is not None and release is not None and release >= family.attention_dp_from
    return ServingProfile(values, sigma, family, dp, tuple(notes))


def efficiency_of(profiles: Sequence[ServingProfile]) -> Efficiency:
    """Stack the efficiencies of many profiles into arrays."""
    return Efficiency(
        **{name: np.array([p.values[name] for p in profiles]) for name in EFFICIENCY_NAMES}
    )


def limits_of(profiles: Sequence[ServingProfile]) -> EngineLimits:
    """Stack the limits of many profiles into arrays."""
    return EngineLimits(
        **{name: np.array([p.values[name] for p in profiles]) for name in EngineLimits.__slots__}
    )


def interval(value: Floats, sigma_log: Floats | float) -> tuple[Floats, Floats]:
    """Return the 80% interval of a positive estimate whose logarithm errs by `sigma_log`."""
    spread = np.exp(_Z_80 * sigma_log)
    return value / spread, value * spread


def calibration_factor(
    observed: Floats,
    predicted: Floats,
    sigma_row: float = SIGMA_ROW,
    sigma_stack: float = SIGMA_STACK,
) -> float:
    """Return the factor on rates from 1 to 5 observed runs of one stack, shrunk by what noise
    explains.
    """
    logs = np.log(observed / predicted)
    weight = len(logs) / (len(logs) + (sigma_row / sigma_stack) ** 2)
    return float(np.exp(weight * np.median(logs)))


def calibrated(profile: ServingProfile, factor: float, runs: int) -> ServingProfile:
    """Return a profile sped up by `factor`, as sure of itself as `runs` observed runs make it."""
    values = dict(profile.values)
    _apply(values, dict.fromkeys(RATE_NAMES, factor))
    _apply(values, dict.fromkeys(FLOOR_NAMES, 1.0 / factor))
    learned = SIGMA_STACK**2 * runs / (runs + (SIGMA_ROW / SIGMA_STACK) ** 2)
    sigma = {
        mode: min(value, max(value**2 - learned, SIGMA_ROW**2) ** 0.5)
        for mode, value in profile.sigma.items()
    }
    return replace(profile, values=values, sigma=sigma)


def release_number(version: str) -> float | None:
    """Return a version as a number that orders releases: `0.17.0` is 17, `1.1` is 101."""
    found = re.search(r"(\d+)\.(\d+)", version)
    return None if found is None else int(found[1]) * 100.0 + int(found[2])


def _family(family: EngineProfile, facts: Sequence[EngineProfile]) -> EngineFamily:
    versions = sorted(
        (fact for fact in facts if fact.scope == "version" and fact.family == family.name),
        key=lambda fact: release_number(fact.version) or 0.0,
    )
    return EngineFamily(
        name=family.name,
        aliases=family.aliases,
        releases=tuple(release_number(fact.version) or 0.0 for fact in versions),
        changes=tuple(fact.change for fact in versions),
        requests=family.requests,
        requests_default=family.requests_usual or np.inf,
        requests_online=family.requests_online or np.inf,
        gateway_s=family.gateway_s,
        poll_steps=family.poll_steps,
        attention_dp_from=release_number(family.attention_dp_from) or np.inf,
        sigma_log_extra=family.residual or 0.0,
    )


def _find(catalog: Catalog, engine: str | None) -> tuple[EngineFamily | None, float | None]:
    wanted = re.sub(r"[^a-z+]", "", re.sub(r"[\d.]+.*$", "", (engine or "").lower()))
    for family in catalog.families:
        if wanted in (family.name, *family.aliases):
            return family, release_number(engine or "")
    return None, None


def _between(family: EngineFamily, release: float) -> dict[str, float]:
    names = dict.fromkeys(name for change in family.changes for name in change)
    return {
        name: float(
            np.exp(
                np.interp(
                    release, family.releases, [np.log(c.get(name, 1.0)) for c in family.changes]
                )
            )
        )
        for name in names
    }


def _apply(values: dict[str, float], change: Mapping[str, float]) -> None:
    for name, factor in change.items():
        values[name] = values[name] * factor
