"""Shapes, plans and parts for tests of the training physics."""

from dataclasses import replace
from typing import Any

from tenfold.facts.loader import load_catalogue
from tenfold.model.estimate import ShapeRow, TrainRow
from tenfold.physics.training.arrays import PRECISION_CODES, Accelerator, Plans, Shape, decoder
from tenfold.physics.training.profile import TrainingProfile
from tenfold.physics.training.shapes import training_part

CATALOGUE = load_catalogue()
PROFILE = TrainingProfile()
SEVEN_B = ShapeRow(layers=32, hidden=4096, heads=32, ffn=11008, vocab=32000, gated=True)


def shape(**changes: Any) -> Shape:
    widths: dict[str, Any] = {
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "ffn": 11008,
        "vocab": 32000,
    }
    return decoder(**(widths | changes))


def part(name: str = "H100", **changes: Any) -> Accelerator:
    return replace(training_part(CATALOGUE.accelerators.get(name)), **changes)


def plan(**changes: Any) -> Plans:
    """A layout whose number of GPUs follows from its degrees."""
    usual: dict[str, Any] = {
        "seq": 4096.0,
        "micro_batch": 1.0,
        "global_batch": 256.0,
        "tp": 1.0,
        "pp": 1.0,
        "dp": 1.0,
        "cp": 1.0,
        "ep": 1.0,
        "virtual_stages": 1.0,
        "shard": 0.0,
        "recompute": 0.0,
        "sequence_parallel": 0.0,
        "precision": float(PRECISION_CODES["bf16"]),
        "scaleup_ranks": 8.0,
        "nic_bytes_s": 50e9,
    }
    asked = usual | changes
    gpus = asked["tp"] * asked["pp"] * asked["dp"] * asked["cp"]
    return Plans(**({"gpus": gpus} | asked))


def row(**changes: Any) -> TrainRow:
    """A row of the contract: a 7B decoder on one node."""
    usual: dict[str, Any] = {
        "id": "a",
        "model": SEVEN_B,
        "accelerator": "H100",
        "gpus": 8,
        "seq": 4096,
        "micro_batch": 1,
        "global_batch": 256,
        "stack": "megatron-core",
    }
    return TrainRow(**(usual | changes))
