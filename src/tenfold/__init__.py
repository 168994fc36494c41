"""Tenfold grows an AI fleet from one rack of GPUs to ten.

`import tenfold` costs nothing: each name below is brought in when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold.compose.fleet import load_facts, load_fleet
    from tenfold.files.hf_config import read_hf_config
    from tenfold.model.errors import TenfoldError
    from tenfold.model.fleet_spec import FleetSpec

__version__ = "0.1.0"
__all__ = ["FleetSpec", "TenfoldError", "load_facts", "load_fleet", "read_hf_config"]

_HOMES = {
    "FleetSpec": "tenfold.model.fleet_spec",
    "TenfoldError": "tenfold.model.errors",
    "load_facts": "tenfold.compose.fleet",
    "load_fleet": "tenfold.compose.fleet",
    "read_hf_config": "tenfold.files.hf_config",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module `tenfold` has no attribute `{name}`")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
