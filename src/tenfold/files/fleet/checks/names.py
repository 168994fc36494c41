"""The names that a fleet file declares, and the faults of naming something else.

Names are taken from the raw tables, so that a row with a fault of its own does not
make every row that refers to it look wrong as well.
"""

from typing import TypeVar, cast

from tenfold.files.core.document import Table
from tenfold.files.fleet.rows import TABLES
from tenfold.model.facts.catalogue import FactTable
from tenfold.model.facts.fact import Fact
from tenfold.model.fleet.finding import Finding, Path

F = TypeVar("F", bound=Fact)


class References:
    """The names a file declares, by table, and a place for what is wrong with them."""

    def __init__(self, values: Table, findings: list[Finding]) -> None:
        self.findings = findings
        self.names = {table: self._declared(values.get(table), table) for table in TABLES}

    def _declared(self, tables: object, kind: str) -> list[str]:
        names: dict[str, int] = {}
        rows = cast(list[object], tables) if isinstance(tables, list) else []
        for position, row in enumerate(rows):
            name = cast(Table, row).get("name") if isinstance(row, dict) else None
            if not isinstance(name, str):
                continue
            if name in names:
                self.add(
                    "duplicate-name",
                    f"{kind} `{name}` stands twice; it is also entry {names[name] + 1}",
                    "give each its own name",
                    (kind, position, "name"),
                )
            names.setdefault(name, position)
        return list(names)

    def add(self, code: str, message: str, hint: str, path: Path) -> None:
        """Note one fault."""
        self.findings.append(Finding(code=code, message=message, hint=hint, path=path))

    def require_site(self, name: str | None, path: Path) -> None:
        """Note a fault where a site is named that the file does not declare."""
        # A file without sites has one, called `main`.
        if self.names["site"] or name not in (None, "main"):
            self.require("site", name, path)

    def require(self, table: str, name: str | None, path: Path) -> None:
        """Note a fault where a row names something that no table declares."""
        if name is not None and name not in self.names[table]:
            declared = ", ".join(f"`{known}`" for known in self.names[table][:8])
            self.add(
                f"unknown-{table}",
                f"there is no {table} `{name}`",
                f"declared: {declared}" if declared else f"add a `[[{table}]]` named `{name}`",
                path,
            )


def require_fact(shelf: FactTable[F], name: str, path: Path, refs: References) -> None:
    """Note a fault where the facts do not know a name."""
    if shelf.find(name) is None:
        refs.add(
            f"unknown-{shelf.kind}", f"no {shelf.kind} is called `{name}`", shelf.hint(name), path
        )
