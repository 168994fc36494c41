"""Read a policy file: which order and placement, with the settings of that policy."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import replace

from tenfold.files.document import read_document
from tenfold.files.fleet_rows import Row
from tenfold.files.rows import read_row
from tenfold.files.slurm_conf import read_slurm_conf
from tenfold.model.errors import FaultyFile
from tenfold.model.finding import Finding
from tenfold.model.policy import Placement, Policy, PolicyName

Limit = Annotated[float, Meta(gt=0, le=1e12)]


class LasRow(Row, frozen=True, kw_only=True):
    """`[las]`."""

    limits_gpu_s: list[Limit] = field(default_factory=lambda: [3_250.0, 7_200.0])


class TenfoldRow(Row, frozen=True, kw_only=True):
    """`[tenfold]`."""

    keep_factor: Annotated[float, Meta(gt=0, le=1)] = 0.5


class SlurmRow(Row, frozen=True, kw_only=True):
    """`[slurm]`."""

    conf: Annotated[str, Meta(min_length=1)]


class PolicyRow(Row, frozen=True, kw_only=True):
    """The whole file."""

    name: PolicyName
    placement: Placement = "tenfold"
    las: LasRow | None = None
    tenfold: TenfoldRow | None = None
    slurm: SlurmRow | None = None


def read_policy(path: Path) -> Policy:
    """Return the policy of a file, or raise `FaultyFile` with all its faults.

    A slurm.conf may be given in place of a policy file; it then speaks for `slurm`.
    """
    if path.suffix == ".conf":
        return Policy(name="slurm", slurm=read_slurm_conf(path))
    document = read_document(path)
    findings: list[Finding] = []
    row = read_row(PolicyRow, document.values, (), findings)
    if row is not None and row.las is not None:
        _check_limits(row.las, findings)
    if row is None or findings:
        located = [
            replace(found, file=document.file, line=document.line_of(found.path))
            for found in findings
        ]
        raise FaultyFile(str(path), located)
    las, tenfold = row.las or LasRow(), row.tenfold or TenfoldRow()
    slurm = None if row.slurm is None else read_slurm_conf(path.parent / row.slurm.conf)
    return Policy(
        name=row.name,
        placement=row.placement,
        las_limits_gpu_s=tuple(las.limits_gpu_s),
        keep_factor=tenfold.keep_factor,
        slurm=slurm,
    )


def _check_limits(row: LasRow, findings: list[Finding]) -> None:
    limits = row.limits_gpu_s
    if any(later <= earlier for earlier, later in pairwise(limits)):
        findings.append(
            Finding(
                code="limits-not-rising",
                message="the limits of `las` do not rise",
                hint="give them from the first queue to the last, such as [3250, 7200]",
                path=("las", "limits_gpu_s"),
            )
        )
