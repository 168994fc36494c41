"""Load pyarrow for Parquet files: an optional extra, because of its size."""

from importlib import import_module
from pathlib import Path
from typing import Any, cast

from tenfold.model.errors import InputError


def arrow_for(path: Path) -> tuple[Any, Any]:
    """Return `pyarrow` and `pyarrow.parquet`, or raise an error that says how to install them."""
    try:
        return cast(Any, import_module("pyarrow")), cast(Any, import_module("pyarrow.parquet"))
    except ImportError:
        raise InputError(
            "parquet-not-installed",
            f"reading the Parquet file `{path}` needs pyarrow, which is not installed",
            "run `pip install 'tenfold[parquet]'`, or use a .csv or .csv.gz file",
            file=str(path),
        ) from None
