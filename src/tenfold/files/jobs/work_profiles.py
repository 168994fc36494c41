"""Read work profiles, the load of jobs on shared resources: `[profile.NAME]` tables.

A job names its profile; an omitted key means no load. Network rates are in Gbit/s, as links are
sold, and storage rates in GB/s, as tiers are.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, cast

from msgspec import Meta, field
from msgspec.structs import replace

from tenfold.files.core.document import Table, read_document
from tenfold.files.core.rows import read_row, wrong_value
from tenfold.files.fleet.rows import Gib, Row
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet import finding
from tenfold.model.fleet.finding import Finding
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.units import SECOND, Bytes, Millis, bytes_from_gib

Share = Annotated[float, Meta(ge=0, le=1)]
Efficiency = Annotated[float, Meta(gt=0, le=2)]
"""Above 1 if a larger gang avoids recomputation or fits in a cache."""
GPUS_MAX = 100_000_000
_TOGETHER = (
    ("network_gbps_per_gpu", "network_share"),
    ("network_share", "network_gbps_per_gpu"),
    ("read_gb_per_s_per_gpu", "tier"),
    ("checkpoint_gib", "tier"),
    ("checkpoint_gib", "checkpoint_every_s"),
    ("checkpoint_every_s", "checkpoint_gib"),
)
"""Pairs (key, key it requires)."""


class ProfileRow(Row, frozen=True, kw_only=True):
    """`[profile.NAME]`."""

    network_gbps_per_gpu: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    network_share: Share | None = None
    read_gb_per_s_per_gpu: Annotated[float, Meta(gt=0, le=10_000)] | None = None
    read_share: Share = 1.0
    tier: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    checkpoint_gib: Gib | None = None
    checkpoint_every_s: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    power_w_per_gpu: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    scaling: dict[str, Efficiency] = field(default_factory=dict[str, Efficiency])


def read_work_profiles(path: Path, tiers: Collection[str] | None = None) -> dict[str, WorkProfile]:
    """Return the profiles of a file by name, or raise `FaultyFile` with all errors.

    If `tiers` is given, profiles may only name those.
    """
    document = read_document(path)
    findings: list[Finding] = []
    profiles: dict[str, WorkProfile] = {}
    for key, value in document.values.items():
        if key != "profile":
            findings.append(_unknown_table(key))
        elif not isinstance(value, dict):
            found = wrong_value((key,), "a table of profiles by name", value)
            findings.append(replace(found, hint="write `[profile.NAME]`, with the name of a job"))
        else:
            profiles |= _read_all(cast(Table, value), tiers, findings)
    if findings:
        located = [
            replace(found, file=document.file, line=document.line_of(found.path))
            for found in findings
        ]
        located.sort(key=lambda found: (found.line or 0, found.code))
        raise InvalidFile(str(path), located)
    return profiles


def _read_all(
    tables: Table, tiers: Collection[str] | None, findings: list[Finding]
) -> dict[str, WorkProfile]:
    profiles: dict[str, WorkProfile] = {}
    for name, table in tables.items():
        path = ("profile", name)
        row = read_row(ProfileRow, table, path, findings)
        if row is None:
            continue
        findings.extend(_incomplete(cast(Table, table), path))
        if row.tier is not None and tiers is not None and row.tier not in tiers:
            findings.append(_unknown_tier(row.tier, tiers, (*path, "tier")))
        scaling = _scaling(row.scaling, (*path, "scaling"), findings)
        profiles[name] = WorkProfile(traffic=_traffic(row), scaling=scaling)
    return profiles


def _incomplete(table: Table, path: finding.Path) -> list[Finding]:
    return [
        Finding(
            code="missing-key",
            message=f"profile `{path[-1]}` sets `{key}` but not `{other}`",
            hint=f"add `{other} = ...`, or remove `{key}`",
            path=(*path, key),
        )
        for key, other in _TOGETHER
        if key in table and other not in table
    ]


def _scaling(
    table: dict[str, float], path: finding.Path, findings: list[Finding]
) -> tuple[tuple[int, float], ...]:
    points: dict[int, float] = {}
    for key, efficiency in table.items():
        if key.isascii() and key.isdigit() and 1 <= int(key[:12]) <= GPUS_MAX:
            points[int(key)] = efficiency
        else:
            findings.append(wrong_value((*path, key), "a whole number of GPUs as its name", key))
    return tuple(sorted(points.items()))


def _traffic(row: ProfileRow) -> Traffic:
    return Traffic(
        network_bytes_per_s_per_gpu=(row.network_gbps_per_gpu or 0.0) * 1e9 / 8,
        network_share=row.network_share or 0.0,
        read_bytes_per_s_per_gpu=(row.read_gb_per_s_per_gpu or 0.0) * 1e9,
        read_share=row.read_share,
        tier=row.tier or "",
        checkpoint_bytes=bytes_from_gib(row.checkpoint_gib) if row.checkpoint_gib else Bytes(0),
        checkpoint_every_ms=Millis(round((row.checkpoint_every_s or 0.0) * SECOND)),
        power_w_per_gpu=row.power_w_per_gpu,
    )


def _unknown_table(key: str) -> Finding:
    return Finding(
        code="unknown-key",
        message=f"unknown key `{key}`",
        hint="a profile file has only `[profile.NAME]` tables",
        path=(key,),
    )


def _unknown_tier(name: str, tiers: Collection[str], path: finding.Path) -> Finding:
    declared = ", ".join(f"`{known}`" for known in sorted(tiers)[:8])
    return Finding(
        code="unknown-tier",
        message=f"the fleet has no tier `{name}`",
        hint=f"declared tiers: {declared}"
        if declared
        else f"add a `[[tier]]` named `{name}` to it",
        path=path,
    )
