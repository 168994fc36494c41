"""Read nodes from a CSV file: one row per node or host list.

Columns: `name` (a node, or a host list such as `n[1-8]`), and optionally `accelerator`,
`gpus`, `cpus`, `memory_gib`, `rack`, `site`. Any other column becomes a label. Every row is
checked, and all errors are reported with their lines.
"""

import csv
import io
from collections.abc import Mapping

from tenfold.files.inventory.checks import (
    CPUS_MAX,
    GPUS_MAX,
    MEMORY_GIB_MAX,
    NAME_MAX,
    NODES_MAX,
    check_inventory,
    name_fault,
)
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.inventory import Inventory, InventoryNode
from tenfold.model.strings import is_one_line

COLUMNS = ("name", "accelerator", "gpus", "cpus", "memory_gib", "rack", "site")


def read_nodes_csv(text: str, file: str) -> Inventory:
    """Return the nodes of a CSV file, or raise with all errors."""
    table = _Table(file)
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                table.add(stripped, reader.line_num)
    except csv.Error as error:
        raise InputError(
            "syntax",
            f"`{file}` is not CSV: {error}",
            "quote cells that contain commas, quotes or line breaks",
            file=file,
            line=reader.line_num,
        ) from None
    if table.findings:
        raise InvalidFile(file, table.findings)
    if not table.header:
        raise InputError(
            "no-nodes",
            f"`{file}` is empty",
            f"start with a line such as `{','.join(COLUMNS)}`, then one row per node",
            file=file,
        )
    nodes = tuple(table.nodes.values())
    check_inventory(nodes, file)
    return Inventory(source=file, name="csv", nodes=nodes)


class _Table:
    """The rows read so far, and the findings about them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.header: list[str] = []
        self.nodes: dict[str, InventoryNode] = {}
        self.lines: dict[str, int] = {}
        self.findings: list[Finding] = []
        self.line = 0

    def add(self, cells: list[str], line: int) -> None:
        self.line = line
        if not self.header:
            self._add_header(cells)
        elif len(cells) > len(self.header):
            count = f"{len(cells)} cells, but the header has {len(self.header)}"
            self._add("too-many-cells", f"the row has {count}", "quote cells that contain a comma")
        else:
            padded = [*cells, *[""] * (len(self.header) - len(cells))]
            self._add_row(dict(zip(self.header, padded, strict=True)))

    def _add_header(self, cells: list[str]) -> None:
        self.header = [_column(cell) for cell in cells]
        problem = ""
        if "name" not in self.header:
            problem = "has no column `name`"
        elif len(dict.fromkeys(self.header)) < len(self.header):
            problem = "has duplicate columns"
        elif "" in self.header:
            problem = "has a column without a name"
        if problem:
            raise InputError(
                "csv-header",
                f"the header {problem}",
                f"start with a line such as `{','.join(COLUMNS)}`",
                file=self.file,
                line=self.line,
            )

    def _add_row(self, row: Mapping[str, str]) -> None:
        before = len(self.findings)
        names = self._names(row["name"])
        gpus = self._number(row, "gpus", 0, GPUS_MAX, whole=True)
        cpus = self._number(row, "cpus", 1, CPUS_MAX, whole=True)
        memory_gib = self._number(row, "memory_gib", 0, MEMORY_GIB_MAX)
        for column in ("accelerator", "rack", "site"):
            if len(row.get(column, "")) > NAME_MAX:
                self._add(
                    "wrong-value", f"`{column}` has more than {NAME_MAX} characters", "shorten it"
                )
            elif not is_one_line(row.get(column, "")):
                self._add("wrong-value", f"`{column}` has control characters", "remove them")
        accelerator = row.get("accelerator") or None
        if len(self.findings) == before and accelerator and not gpus:
            message = f"`{row['name']}` has accelerator `{accelerator}` but no `gpus`"
            self._add("accelerator-without-gpus", message, "fill in `gpus`, or clear `accelerator`")
        if len(self.findings) > before:
            return
        for name in names:
            self.lines[name] = self.line
            self.nodes[name] = InventoryNode(
                name=name,
                accelerator=accelerator,
                gpus=int(gpus),
                cpus=int(cpus),
                memory_gib=memory_gib,
                rack=row.get("rack") or None,
                site=row.get("site") or None,
                labels={key: row[key] for key in self.header if key not in COLUMNS and row[key]},
            )

    def _names(self, text: str) -> list[str]:
        try:
            names = hostlist.expand(text)
        except hostlist.HostlistError as error:
            self._add("bad-host-list", f"cannot parse `name`: {error}", "write it as `n[1-4]`")
            return []
        if len(self.nodes) + len(names) > NODES_MAX:
            message = f"the file has more than {NODES_MAX:,} nodes"
            self._add("too-many-nodes", message, "split the file by site")
            return []
        faults = [fault for name in names or [text] if (fault := name_fault(name))]
        if faults:
            self._add("bad-node", faults[0], "write a name such as `gpu-01`")
        for name in names:
            if name in self.lines:
                message = f"duplicate node `{name}` (also on line {self.lines[name]})"
                self._add("duplicate-name", message, "list each node once")
                break
        return names

    def _number(
        self, row: Mapping[str, str], column: str, low: int, high: int, *, whole: bool = False
    ) -> float:
        text = row.get(column, "")
        if not text:
            return low
        try:
            value = int(text[:30]) if whole else float(text[:30])
        except ValueError:
            value = None
        if value is None or len(text) > 30 or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            message = f"`{column}` expects {kind} from {low} to {high:,}, got `{text[:40]}`"
            self._add("wrong-value", message, "write a plain number without a unit")
            return low
        return value

    def _add(self, code: str, message: str, hint: str) -> None:
        self.findings.append(
            Finding(code=code, message=message, hint=hint, file=self.file, line=self.line)
        )


def _column(cell: str) -> str:
    plain = cell.lower().replace(" ", "_")
    return plain if plain in COLUMNS else cell
