"""Settings from the environment, read in this one place."""

import os
from pathlib import Path


def facts_folder(stated: Path | None = None) -> Path | None:
    """Return the user's facts folder: the one stated, else `TENFOLD_FACTS`, else none."""
    if stated is not None:
        return stated
    named = os.environ.get("TENFOLD_FACTS")
    return Path(named) if named else None


def debug() -> bool:
    """Tell whether a bug should show its traceback (`TENFOLD_DEBUG=1`)."""
    return os.environ.get("TENFOLD_DEBUG", "") not in ("", "0")
