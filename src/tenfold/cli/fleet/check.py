"""Print the findings of `tenfold fleet check`."""

from collections.abc import Sequence
from pathlib import Path

from tenfold.cli.errors import new_hint, place_of
from tenfold.cli.output import show
from tenfold.cli.screen import Text
from tenfold.compose.fleet import FleetCheck, check_fleet
from tenfold.files.core.document import SUFFIXES
from tenfold.model.errors import InputError
from tenfold.model.fleet.finding import Finding
from tenfold.report.figures import count

STYLES = {"error": "bold red", "warning": "yellow"}


def check_files(paths: Sequence[Path], facts: Path | None) -> list[FleetCheck]:
    """Check files and folders of files; a file that cannot be read counts as an error."""
    if not paths:
        raise InputError(
            "no-file", "no fleet file given", "pass one: `tenfold fleet check fleet.toml`"
        )
    checks: list[FleetCheck] = []
    for path in _files_in(paths):
        try:
            checks.append(check_fleet(path, facts))
        except InputError as error:
            checks.append(FleetCheck(file=str(path), faults=(_as_finding(error),), warnings=()))
    return checks


def _files_in(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(one for one in path.iterdir() if one.suffix.lower() in SUFFIXES)
        if not inside:
            raise InputError(
                "is-a-directory",
                f"`{path}` contains no TOML or YAML file",
                "pass a fleet file, or a folder with fleet files",
                file=str(path),
            )
        files.extend(inside)
    return files


def _as_finding(error: InputError) -> Finding:
    return Finding(
        code=error.code,
        message=error.message,
        hint=error.hint,
        file=error.file,
        line=error.line,
    )


def as_rows(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """Return findings as rows for JSON output."""
    keys = ("file", "line", "code", "message", "hint", "field")
    return [{key: getattr(found, key) for key in keys} for found in findings]


def show_findings(findings: Sequence[Finding]) -> None:
    """Print each finding with its hint."""
    for found in findings:
        place = place_of(found.file, found.line, found.message)
        show(
            Text.assemble(
                (f"{found.level}: ", STYLES[found.level]),
                f"{place}{found.message} ",
                (f"[{found.code}]", "dim"),
            )
        )
        hint = new_hint(found.hint, found.message)
        if hint:
            show(Text(f"  hint: {hint}", style="dim"))


def show_checks(checks: Sequence[FleetCheck]) -> None:
    """Print the findings of each file, then their counts."""
    for one in checks:
        show_findings((*one.faults, *one.warnings))
    faults = sum(len(one.faults) for one in checks)
    warnings = sum(len(one.warnings) for one in checks)
    show(
        f"{count(len(checks), 'file')} checked: {count(faults, 'error')}, "
        f"{count(warnings, 'warning')}"
    )
