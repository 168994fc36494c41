"""Read trigger rules."""

from pathlib import Path

from tenfold.decide.capacity.triggers import TriggerRule
from tenfold.files.capacity.tables import FileTables


def read_triggers(path: Path) -> tuple[TriggerRule, ...]:
    """Return the rules of a file, or raise with all its errors."""
    tables = FileTables(path, ("trigger",), "trigger file")
    rows = tables.many("trigger", TriggerRule)
    tables.check_names("trigger", {at: row.name for at, row in rows.items()})
    for at, row in rows.items():
        if row.clears_below is not None and row.clears_below > row.above:
            message = f"trigger `{row.name}` clears at {row.clears_below:g}, above {row.above:g}"
            hint = "set `clears_below` below `above`"
            tables.wrong(("trigger", at, "clears_below"), message, hint)
    tables.finish()
    return tuple(rows.values())
