"""How far a long attack is, for whoever waits for it."""

import os
from pathlib import Path

VARIABLE = "TENFOLD_HOSTILE_PROGRESS"
"""Names the file that gets a line now and then; without it nothing is written."""


def tell(line: str) -> None:
    """Add a line."""
    path = os.environ.get(VARIABLE)
    if path:
        with Path(path).open("a") as file:
            file.write(f"{line}\n")
