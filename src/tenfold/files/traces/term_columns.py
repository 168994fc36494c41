"""The columns of a job table that say when a job may run, where, and what may be done to it.

Most tables have none of them, and then nothing here is looked at.
"""

from typing import NamedTuple

from tenfold.files.traces.cells import Cells
from tenfold.files.traces.tables import Table

TERMS = (
    "kind",
    "preemptible",
    "checkpoint_every_s",
    "least_gpus",
    "most_gpus",
    "after",
    "array",
    "array_most",
    "off_peak",
    "within",
    "how",
    "needs",
    "avoids",
    "busy_s",
)


class TermColumns(NamedTuple):
    """The terms of a job table by column; None where a column is absent. Times are in ms."""

    kind: Cells[str] | None
    preemptible: Cells[str] | None
    checkpoint_every_ms: Cells[int] | None
    least_milli: Cells[int] | None
    most_milli: Cells[int] | None
    after: Cells[str] | None
    array_milli: Cells[int] | None
    array_most_milli: Cells[int] | None
    off_peak: Cells[str] | None
    within: Cells[str] | None
    how: Cells[str] | None
    needs: Cells[str] | None
    avoids: Cells[str] | None
    busy_ms: Cells[int] | None

    def numbers(self) -> dict[str, Cells[int]]:
        """Return the columns of numbers that are there, by name."""
        found = {
            "checkpoint_every_s": self.checkpoint_every_ms,
            "least_gpus": self.least_milli,
            "most_gpus": self.most_milli,
            "array": self.array_milli,
            "array_most": self.array_most_milli,
            "busy_s": self.busy_ms,
        }
        return {name: cells for name, cells in found.items() if cells is not None}


def term_columns(table: Table) -> TermColumns | None:
    """Return the terms of a table, or None where it has none."""
    if not any(name in table.names for name in TERMS):
        return None
    return TermColumns(
        kind=table.texts("kind"),
        preemptible=table.texts("preemptible"),
        checkpoint_every_ms=table.milli("checkpoint_every_s"),
        least_milli=table.milli("least_gpus"),
        most_milli=table.milli("most_gpus"),
        after=table.texts("after"),
        array_milli=table.milli("array"),
        array_most_milli=table.milli("array_most"),
        off_peak=table.texts("off_peak"),
        within=table.texts("within"),
        how=table.texts("how"),
        needs=table.texts("needs"),
        avoids=table.texts("avoids"),
        busy_ms=table.milli("busy_s"),
    )
