"""Read the service file of `tenfold sim autoscale`, and the cold starts that it names."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from tenfold.files.core.document import Document, read_document
from tenfold.files.core.rows import read_row
from tenfold.files.series.columns import bad_row, check_columns, number_column
from tenfold.files.services.objectives import objective_faults
from tenfold.files.traces.tables import read_table
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.service.simulated import SimulatedService
from tenfold.model.units import SECOND

COLUMN = "cold_start_s"
HINT = f"give one row per measured start, with the column `{COLUMN}`"


def read_simulated_service(path: Path) -> tuple[SimulatedService, Sequence[int]]:
    """Return a service and its cold starts in milliseconds; raise with all errors of the file."""
    document = read_document(path)
    if "command" in document.values or "pool" in document.values:
        raise InputError(
            "unknown-key",
            f"`{path}` is not a simulation file: it looks like a fleet or service file",
            "write one with `slots`, `prefill_tokens_per_s` and the other keys of "
            "`tenfold sim autoscale --help`",
            file=str(path),
        )
    findings: list[Finding] = []
    service = read_row(SimulatedService, document.values, (), findings)
    if service is not None and not findings:
        findings += _conflicts(service)
    if findings:
        raise InvalidFile(str(path), _located(document, findings))
    assert service is not None, "a row without findings was read"
    if service.cold_start_s is not None:
        return service, [round(service.cold_start_s * SECOND)]
    return service, _cold_starts_ms(path.parent / service.cold_start_file)


def _cold_starts_ms(path: Path) -> list[int]:
    table = read_table(path, (COLUMN,))
    check_columns(table, path, (COLUMN,), HINT)
    values = number_column(table, path, COLUMN, HINT)
    for row, value in enumerate(values):
        if not 0 <= value <= 86_400:
            message = f"`{COLUMN}` must be from 0 to 86,400, got {value:g}"
            raise bad_row(table, path, row, (COLUMN, message, "write seconds"))
    return [round(value * SECOND) for value in values]


def _conflicts(service: SimulatedService) -> list[Finding]:
    findings = list(objective_faults(service))
    if service.cold_start_s is None and not service.cold_start_file:
        findings.append(
            Finding(
                code="missing-key",
                message="missing key `cold_start_s`",
                hint="add `cold_start_s = ...`, or `cold_start_file = ...` with measured ones",
                path=("cold_start_s",),
            )
        )
    if service.cold_start_s is not None and service.cold_start_file:
        findings.append(
            Finding(
                code="wrong-value",
                message="both `cold_start_s` and `cold_start_file` are given",
                hint="remove one of them",
                path=("cold_start_file",),
            )
        )
    if service.replicas_min > service.replicas_max:
        findings.append(
            Finding(
                code="wrong-value",
                message=f"`replicas_min` is {service.replicas_min}, above `replicas_max` of "
                f"{service.replicas_max}",
                hint="raise `replicas_max`, or lower `replicas_min`",
                path=("replicas_min",),
            )
        )
    return findings


def _located(document: Document, findings: Sequence[Finding]) -> list[Finding]:
    located = [
        replace(one, file=document.file, line=document.line_of(one.path)) for one in findings
    ]
    return sorted(located, key=lambda one: (one.line or 0, one.code))
