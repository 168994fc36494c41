"""Tenfold plans, runs, grows and observes AI fleets.

`import tenfold` is cheap: each name below is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold.client.async_client import AsyncClient
    from tenfold.client.client import Client
    from tenfold.compose.fleet import load_facts, load_fleet
    from tenfold.files.models.hf_config import read_hf_config
    from tenfold.model.errors import InputError, NoAnswer, Refused, TenfoldError, Unreachable
    from tenfold.model.estimate import (
        NoEstimate,
        ServeEstimate,
        ServeRow,
        ShapeRow,
        TrainEstimate,
        TrainRow,
    )
    from tenfold.model.fleet.spec import FleetSpec
    from tenfold.study.estimate.serve import estimate_serve
    from tenfold.study.estimate.train import estimate_train
    from tenfold.study.plan.serve import ServeQuestion, plan_serving
    from tenfold.study.plan.train import TrainQuestion, plan_training

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Client",
    "FleetSpec",
    "InputError",
    "NoAnswer",
    "NoEstimate",
    "Refused",
    "ServeEstimate",
    "ServeQuestion",
    "ServeRow",
    "ShapeRow",
    "TenfoldError",
    "TrainEstimate",
    "TrainQuestion",
    "TrainRow",
    "Unreachable",
    "estimate_serve",
    "estimate_train",
    "load_facts",
    "load_fleet",
    "plan_serving",
    "plan_training",
    "read_hf_config",
]

_HOMES = {
    "AsyncClient": "tenfold.client.async_client",
    "Client": "tenfold.client.client",
    "FleetSpec": "tenfold.model.fleet.spec",
    "InputError": "tenfold.model.errors",
    "NoAnswer": "tenfold.model.errors",
    "NoEstimate": "tenfold.model.estimate",
    "Refused": "tenfold.model.errors",
    "ServeEstimate": "tenfold.model.estimate",
    "ServeQuestion": "tenfold.study.plan.serve",
    "ServeRow": "tenfold.model.estimate",
    "ShapeRow": "tenfold.model.estimate",
    "TrainEstimate": "tenfold.model.estimate",
    "TrainQuestion": "tenfold.study.plan.train",
    "TrainRow": "tenfold.model.estimate",
    "Unreachable": "tenfold.model.errors",
    "estimate_serve": "tenfold.study.estimate.serve",
    "estimate_train": "tenfold.study.estimate.train",
    "plan_serving": "tenfold.study.plan.serve",
    "plan_training": "tenfold.study.plan.train",
    "TenfoldError": "tenfold.model.errors",
    "load_facts": "tenfold.compose.fleet",
    "load_fleet": "tenfold.compose.fleet",
    "read_hf_config": "tenfold.files.models.hf_config",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module `tenfold` has no attribute `{name}`")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
