"""Read fact files into a catalogue: the shipped ones, overridden by the user's.

A user's row with a known name overrides only the fields it sets, and must give their
source; a row with a new name adds a fact.
"""

from collections.abc import Collection, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from tenfold.facts.checks import check_catalogue, check_row
from tenfold.facts.kinds import KINDS, Kind
from tenfold.files.core.document import Document, Table, read_document
from tenfold.files.core.rows import read_row, wrong_value
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.facts.catalogue import Catalogue, FactTable
from tenfold.model.facts.fact import Fact, spelling
from tenfold.model.fleet.finding import Finding

PROVENANCE = ("source", "date", "evidence")


class _RowCollector:
    """Raw rows by kind and normalised name, and where each was last set."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Table]] = {kind: {} for kind in KINDS}
        self.places: dict[tuple[str, str], tuple[Document, int]] = {}
        self.findings: list[Finding] = []

    def add(self, document: Document) -> None:
        for key, value in document.values.items():
            if key not in KINDS:
                hint = f"a fact file has {', '.join(f'[[{kind}]]' for kind in KINDS)}"
                message = f"`{key}` is not a kind of fact"
                self.note(
                    document, Finding(code="unknown-key", message=message, hint=hint, path=(key,))
                )
            elif not isinstance(value, list):
                self.note(document, wrong_value((key,), "a list of tables", value))
            else:
                for position, row in enumerate(cast(list[object], value)):
                    self._add_row(document, key, position, row)

    def _add_row(self, document: Document, kind: str, position: int, row: object) -> None:
        path = (kind, position)
        name = cast(Table, row).get("name") if isinstance(row, dict) else None
        if not isinstance(name, str) or not spelling(name):
            message = f"missing key `name` in {kind} {position + 1}"
            hint = 'add `name = "..."`'
            self.note(document, Finding(code="missing-key", message=message, hint=hint, path=path))
            return
        table = cast(Table, row)
        folded = spelling(name)
        known = self.rows[kind].get(folded)
        if known is not None and self.places[kind, folded][0] is document:
            message = f"{kind} `{name}` is defined twice in this file"
            found = Finding(code="duplicate-name", message=message, hint="merge the two", path=path)
            self.note(document, found)
            return
        for key in PROVENANCE if known is not None else ():
            if key not in table:
                message = f"{kind} `{name}` has no `{key}`"
                hint = f"add `{key} = ...`: every fact needs a source, a date and its evidence"
                self.note(
                    document, Finding(code="missing-key", message=message, hint=hint, path=path)
                )
        self.rows[kind][folded] = table if known is None else _overlaid(known, table)
        self.places[kind, folded] = (document, position)

    def note(self, document: Document, found: Finding) -> None:
        line = document.line_of(found.path)
        self.findings.append(replace(found, file=document.file, line=line))


def _overlaid(known: Table, table: Table) -> Table:
    """Return a shipped row with a user's fields merged in, each with the user's provenance."""
    provenance = {key: table[key] for key in PROVENANCE if key in table}
    kept = ("name", *PROVENANCE)
    fields = {key: value for key, value in table.items() if key not in kept}
    changed = {**cast(Table, known.get("changed", {})), **dict.fromkeys(fields, provenance)}
    return {**known, **fields, "changed": changed}


def load_catalogue(folder: Path | None = None, *, without: Collection[str] = ()) -> Catalogue:
    """Return the shipped facts overridden by a user's folder, or raise `InvalidFile`.

    Shipped files named in `without` are skipped: a short command that needs no models or
    prices should not spend time on reading them.
    """
    catalogue, findings = read_catalogue(folder, without=without)
    faults = [found for found in findings if found.severity == "fault"]
    if faults:
        raise InvalidFile(faults[0].file, faults)
    return catalogue


def read_catalogue(
    folder: Path | None = None, *, without: Collection[str] = ()
) -> tuple[Catalogue, list[Finding]]:
    """Return the facts that could be read, and all faults found."""
    collector = _RowCollector()
    shipped = [path for path in shipped_files() if path.stem not in without]
    for path in [*shipped, *(() if folder is None else user_files(folder))]:
        collector.add(read_document(path))
    tables = {kind.table: FactTable(kind.name, _facts(kind, collector)) for kind in KINDS.values()}
    catalogue = Catalogue(**tables)  # pyright: ignore[reportArgumentType]
    for kind, name, found in check_catalogue(catalogue):
        document, position = collector.places[kind, spelling(name)]
        collector.note(document, replace(found, path=(kind, position, *found.path)))
    return catalogue, collector.findings


def _facts(kind: Kind, collector: _RowCollector) -> Mapping[str, Fact]:
    facts: dict[str, Fact] = {}
    for folded, table in collector.rows[kind.name].items():
        document, position = collector.places[kind.name, folded]
        found: list[Finding] = []
        fact = read_row(kind.struct, table, (kind.name, position), found)
        if fact is not None:
            found.extend(check_row(fact, (kind.name, position)))
            facts[fact.name] = fact
        for one in found:
            collector.note(document, one)
    return facts


def shipped_files() -> list[Path]:
    """Return the fact files that come with Tenfold, in order of name."""
    data = Path(str(files("tenfold.facts") / "data"))
    return sorted(data.glob("*.toml"))


def user_files(folder: Path) -> Iterable[Path]:
    """Return the fact files of a user's folder (or the one file named)."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise InputError(
            "no-such-folder",
            f"facts folder `{folder}` does not exist",
            "pass a folder with fact files in TOML",
            file=str(folder),
        )
    found = sorted(path for path in folder.iterdir() if path.suffix in (".toml", ".yaml", ".yml"))
    if not found:
        raise InputError(
            "empty-folder",
            f"facts folder `{folder}` has no TOML or YAML files",
            "add fact files to it, or leave the folder out",
            file=str(folder),
        )
    return found
