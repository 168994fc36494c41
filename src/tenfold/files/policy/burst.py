"""Read a burst file: a policy with its budget, the data of jobs, and the zones to rent in."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from tenfold.files.core.document import read_document
from tenfold.files.core.rows import read_row, read_rows
from tenfold.model.errors import InvalidFile
from tenfold.model.facts.catalogue import FactTable
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.hardware import Accelerator
from tenfold.model.market.burst import BurstPolicy, Zone
from tenfold.model.strings import Name, Tags
from tenfold.model.units import usd_micros

Positive = Annotated[float, Meta(gt=0, le=1e9)]
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]


class ZoneRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[zone]]`."""

    name: Name
    accelerator: Name
    gpus_per_node: Annotated[int, Meta(ge=1, le=1_024)]
    usd_per_node_hour: NotNegative
    startup_s: NotNegative = 600.0
    gbps: Positive = 10.0
    egress_usd_per_gb: NotNegative = 0.0
    tags: Tags = []


class DataRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[data]`: what every job moves."""

    staged_gb: NotNegative = 0.0
    results_gb: NotNegative = 0.0


class BurstFile(Struct, frozen=True, kw_only=True):
    """A burst file that was read."""

    policy: BurstPolicy
    zones: tuple[Zone, ...]
    data: DataRow


def read_burst(path: Path, accelerators: FactTable[Accelerator]) -> BurstFile:
    """Return a burst file with accelerators by their own names, or raise `InvalidFile`."""
    document = read_document(path)
    findings: list[Finding] = []
    values = document.values
    plain = {key: value for key, value in values.items() if key not in ("zone", "data")}
    policy = read_row(BurstPolicy, plain, (), findings)
    data = read_row(DataRow, values.get("data", {}), ("data",), findings) or DataRow()
    rows = read_rows(ZoneRow, values.get("zone", []), ("zone",), findings)
    zones = tuple(_zone(row, accelerators) for row in rows.values())
    if not zones and not findings:
        findings.append(
            Finding(
                code="no-zone",
                message="there is no zone to rent in",
                hint="add a [[zone]] with a name, an accelerator, gpus_per_node and "
                "usd_per_node_hour",
                path=("zone",),
            )
        )
    if findings or policy is None:
        located = [
            replace(one, file=document.file, line=document.line_of(one.path)) for one in findings
        ]
        raise InvalidFile(str(path), located)
    return BurstFile(policy=policy, zones=zones, data=data)


def _zone(row: ZoneRow, accelerators: FactTable[Accelerator]) -> Zone:
    part = accelerators.find(row.accelerator)
    return Zone(
        name=row.name,
        accelerator=row.accelerator,
        also=() if part is None else (part.name, *part.aliases),
        gpus_per_node=row.gpus_per_node,
        usd_micros_per_hour=usd_micros(row.usd_per_node_hour),
        startup_s=row.startup_s,
        gbps=row.gbps,
        egress_usd_per_gb=row.egress_usd_per_gb,
        tags=tuple(row.tags),
    )
