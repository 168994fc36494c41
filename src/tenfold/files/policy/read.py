"""Read a policy file: order, placement and settings of a policy."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from tenfold.files.core.document import Document, read_document
from tenfold.files.core.rows import read_row
from tenfold.files.fleet.rows import Row
from tenfold.files.policy.checks import check_governance
from tenfold.files.policy.govern import GovernanceTables, read_governance
from tenfold.files.slurm.conf import read_slurm_conf
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.policy.policy import Placement, Policy, PolicyName

Limit = Annotated[float, Meta(gt=0, le=1e12)]
GOVERN_TABLES = frozenset({"govern", "teams", "windows", "prices"})


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
    govern: object = None
    """This and the next keys are read in `govern`, key by key and row by row."""
    teams: object = None
    windows: object = None
    prices: object = None


class PolicyReading(Struct, frozen=True, kw_only=True):
    """A file as read: its policy if it has no errors, and all findings."""

    document: Document | None
    """None for a slurm.conf."""
    policy: Policy | None
    tables: GovernanceTables | None = None
    findings: tuple[Finding, ...] = ()

    def located(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return findings with file and line, in file order."""
        document = self.document
        assert document is not None, "a slurm.conf has no findings"
        found = [
            replace(one, file=document.file, line=document.line_of(one.path)) for one in findings
        ]
        return sorted(found, key=lambda one: (one.line or 0, one.code))


def read_policy(path: Path) -> Policy:
    """Return the policy of a file, or raise `InvalidFile` with all its errors.

    A slurm.conf is accepted too, and gives the policy `slurm`.
    """
    reading = read_policy_file(path)
    if reading.policy is None:
        faults = [found for found in reading.findings if found.severity == "fault"]
        raise InvalidFile(str(path), faults)
    return reading.policy


def read_policy_file(path: Path) -> PolicyReading:
    """Read a whole policy file and collect every error and warning."""
    if path.suffix == ".conf":
        conf = read_slurm_conf(path)
        return PolicyReading(document=None, policy=Policy(name="slurm", slurm=conf))
    document = read_document(path)
    findings: list[Finding] = []
    row = read_row(PolicyRow, document.values, (), findings)
    if row is not None and row.las is not None:
        _check_limits(row.las, findings)
    tables = _tables("" if row is None else row.name, document, findings)
    reading = PolicyReading(document=document, policy=None, tables=tables)
    reading = replace(reading, findings=tuple(reading.located(findings)))
    if row is None or any(found.severity == "fault" for found in findings):
        return reading
    return replace(reading, policy=_policy(row, path, tables))


def _tables(name: str, document: Document, findings: list[Finding]) -> GovernanceTables | None:
    """Return the governance rules of a file if it has any, whatever policy it names."""
    if name != "governed" and not GOVERN_TABLES & document.values.keys():
        return None
    tables = read_governance(document.values, findings)
    findings += check_governance(tables, document.values)
    return tables


def _policy(row: PolicyRow, path: Path, tables: GovernanceTables | None) -> Policy:
    las, tenfold = row.las or LasRow(), row.tenfold or TenfoldRow()
    slurm = None if row.slurm is None else read_slurm_conf(path.parent / row.slurm.conf)
    return Policy(
        name=row.name,
        placement=row.placement,
        las_limits_gpu_s=tuple(las.limits_gpu_s),
        keep_factor=tenfold.keep_factor,
        slurm=slurm,
        govern=tables.govern if tables is not None and row.name == "governed" else None,
    )


def _check_limits(row: LasRow, findings: list[Finding]) -> None:
    limits = row.limits_gpu_s
    if any(later <= earlier for earlier, later in pairwise(limits)):
        findings.append(
            Finding(
                code="limits-not-rising",
                message="`limits_gpu_s` of `las` are not in ascending order",
                hint="list them from the first queue to the last, such as [3250, 7200]",
                path=("las", "limits_gpu_s"),
            )
        )
