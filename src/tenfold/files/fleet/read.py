"""Read and validate a fleet file."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.core.document import Document, Table, read_document
from tenfold.files.core.rows import read_row, read_rows, wrong_value
from tenfold.files.fleet.build import build
from tenfold.files.fleet.checks.references import check_references
from tenfold.files.fleet.rows import SINGLE_TABLES, TABLES, FleetRows
from tenfold.model.errors import InvalidFile
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.spec import FleetSpec

FACT_TABLES = frozenset({"accelerator", "medium", "failure", "cooling", "energy", "price", "model"})


class FleetReading(Struct, frozen=True, kw_only=True):
    """The result of reading a fleet file: its description if valid, and all findings."""

    document: Document
    spec: FleetSpec | None
    findings: tuple[Finding, ...]

    def located(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return findings with the file and line of their paths."""
        return [
            replace(found, file=self.document.file, line=self.document.line_of(found.path))
            for found in findings
        ]


def read_fleet(
    path: Path, catalogue: Catalogue, *, unknown_accelerators: bool = False
) -> FleetReading:
    """Read a fleet file and collect all errors in it."""
    document = read_document(path)
    findings: list[Finding] = []
    other = _other_file(document.values)
    if other is not None:
        return _reading(document, None, [other])
    rows = read_tables(document.values, findings)
    check_references(rows, document.values, catalogue, findings, unknown_accelerators)
    spec = None if findings else build(rows, _name_of(path), catalogue, findings)
    return _reading(document, None if findings else spec, findings)


def _reading(
    document: Document, spec: FleetSpec | None, findings: Sequence[Finding]
) -> FleetReading:
    reading = FleetReading(document=document, spec=spec, findings=())
    located = reading.located(findings)
    located.sort(key=lambda found: (found.line or 0, found.code))
    return replace(reading, findings=tuple(located))


def _other_file(values: Table) -> Finding | None:
    """Return the finding for a job file or a file with facts, which have no pools."""
    if "pool" in values:
        return None
    if "command" in values:
        return Finding(
            code="job-file",
            message="this looks like a job file (`command`), not a fleet",
            hint="check it with `tenfold job submit --dry-run`",
            path=("command",),
        )
    kind = next((key for key in values if key in FACT_TABLES), None)
    if kind is None or not isinstance(values[kind], list | dict):
        return None
    return Finding(
        code="facts-file",
        message=f"this file contains facts (`{kind}`), not a fleet",
        hint="check it with `tenfold facts check`, and pass its folder with `--facts`",
        path=(kind,),
    )


def _name_of(path: Path) -> str:
    """Return a default fleet name: the file stem, or the folder if the stem is `fleet`."""
    return path.stem if path.stem != "fleet" else path.resolve().parent.name or path.stem


def load_fleet(
    path: Path, catalogue: Catalogue, *, unknown_accelerators: bool = False
) -> FleetSpec:
    """Return the description in a file, or raise `InvalidFile` with all errors."""
    reading = read_fleet(path, catalogue, unknown_accelerators=unknown_accelerators)
    if reading.spec is None:
        raise InvalidFile(str(path), reading.findings)
    return reading.spec


def read_tables(values: Table, findings: list[Finding]) -> FleetRows:
    """Return the valid tables of a fleet file, and add a finding for each error."""
    tables: dict[str, object] = {}
    for key, value in values.items():
        if key == "name":
            if isinstance(value, str) and value:
                tables["name"] = value
            else:
                findings.append(wrong_value((key,), "a non-empty string", value))
        elif key in SINGLE_TABLES:
            row_type = SINGLE_TABLES[key]
            tables[key] = read_row(row_type, value, (key,), findings) or row_type()
        elif key in TABLES:
            tables[key] = read_rows(TABLES[key], value, (key,), findings)
        else:
            findings.append(_unknown_table(key))
    return FleetRows(**cast(dict[str, dict[int, object]], tables))  # pyright: ignore[reportArgumentType]


def _unknown_table(key: str) -> Finding:
    known = ["name", *TABLES, *SINGLE_TABLES]
    singular = key.rstrip("s")
    hint = (
        f"did you mean `{singular}`? Table names are singular"
        if singular in known
        else f"valid top-level keys: {', '.join(known)}"
    )
    return Finding(code="unknown-key", message=f"unknown key `{key}`", hint=hint, path=(key,))
