"""The names that a fleet file declares, and errors about names it does not declare.

Names come from the raw tables, so an error in a row does not cause errors in every row that
refers to it.
"""

from typing import TypeVar, cast

from tenfold.files.core.document import Table
from tenfold.files.fleet.rows import TABLES
from tenfold.model.facts.catalogue import FactTable
from tenfold.model.facts.fact import Fact
from tenfold.model.fleet.finding import Finding, Path

F = TypeVar("F", bound=Fact)


class References:
    """The declared names by table, and the findings about them."""

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
                    f"{kind}s {names[name] + 1} and {position + 1} are both named `{name}`",
                    "use a unique name",
                    (kind, position, "name"),
                )
            names.setdefault(name, position)
        return list(names)

    def add(self, code: str, message: str, hint: str, path: Path) -> None:
        """Add one finding."""
        self.findings.append(Finding(code=code, message=message, hint=hint, path=path))

    def require_site(self, name: str | None, path: Path) -> None:
        """Add a finding if the file does not declare this site."""
        # A file without sites has one site, named `main`.
        if self.names["site"] or name not in (None, "main"):
            self.require("site", name, path)

    def require(self, table: str, name: str | None, path: Path) -> None:
        """Add a finding if no table declares this name."""
        if name is not None and name not in self.names[table]:
            declared = ", ".join(f"`{known}`" for known in self.names[table][:8])
            self.add(
                f"unknown-{table}",
                f"unknown {table} `{name}`",
                f"declared {table}s: {declared}"
                if declared
                else f"add a `[[{table}]]` named `{name}`",
                path,
            )


def require_fact(shelf: FactTable[F], name: str, path: Path, refs: References) -> None:
    """Add a finding if the facts have no entry of this name."""
    if shelf.find(name) is None:
        refs.add(f"unknown-{shelf.kind}", f"unknown {shelf.noun} `{name}`", shelf.hint(name), path)
