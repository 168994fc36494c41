"""Arrow, which reads and writes Parquet: an extra, for it is larger than all else together."""

from importlib import import_module
from pathlib import Path
from typing import Any, cast

from tenfold.model.errors import InputError


def arrow_for(path: Path) -> tuple[Any, Any]:
    """Return `pyarrow` and `pyarrow.parquet`, or say how to install them."""
    try:
        return cast(Any, import_module("pyarrow")), cast(Any, import_module("pyarrow.parquet"))
    except ImportError:
        raise InputError(
            "parquet-not-installed",
            f"`{path}` is a Parquet file, and pyarrow is not installed",
            "pip install 'tenfold[parquet]', or use a .csv or .csv.gz file",
            file=str(path),
        ) from None
