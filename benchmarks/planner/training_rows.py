"""Published and measured training runs as rows of the contract, with the step that was observed.

Names are resolved by the catalogue and nulls are filled by `estimate train` itself, so what is
judged here is what a user gets. Only what the contract has no word for is read here: how a source
counts its FLOPs, and that MaxText never accumulates gradients.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenfold.model.errors import InputError
from tenfold.model.estimate import ShapeRow, TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.plan import Precision, Recompute, Shard
from tenfold.physics.arrays import Floats
from tenfold.physics.training.arrays import Shape, gather, parameters, take
from tenfold.physics.training.calibration import Runs
from tenfold.physics.training.defaults import default_micro_batch
from tenfold.physics.training.names import levels_of, stack_key, version_family
from tenfold.physics.training.profile import TrainingProfile
from tenfold.physics.training.shapes import training_part, training_shape
from tenfold.study.estimate.fill import FilledConfig, fill

SHARED = Path(__file__).resolve().parents[3] / "shared"
PUBLISHED = SHARED / "published" / "published_training.csv"
MEASURED = SHARED / "measured" / "h200_train.jsonl"
H200 = "measured H200"
OWN_STACK = "pytorch-masters"
"""The stack of `benchmarks/h200_steps.py`."""
# vTrain's cluster has half of the usual network; its notes say so.
NARROW_NETWORK, NARROW_NIC_GBPS = "800 Gb/s per node", 100.0
# Its tables have no column for the precision, but the notes below them say that weights and
# activations are quantized, in blocks of two sizes (docs/performance-summary-archive.md, 25.09).
FP8_RELEASE = "Megatron-Bridge 25.09"
# A row says everything that decides its time when these are given.
TELLING = ("gbs", "mbs", "tp", "pp", "dp", "shard", "recompute", "precision")
FULL_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Rows:
    """Runs as arrays and as rows of the contract, in one order.

    `levels` are the names of family, family@generation and stack@generation; `raw` is the line of
    the file, for what only one table asks.
    """

    rows: NDArray[np.object_]
    runs: Runs
    step_s: Floats
    source: NDArray[np.str_]
    model: NDArray[np.str_]
    levels: NDArray[np.str_]
    raw: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.step_s)


@dataclass(frozen=True, slots=True)
class Observed:
    """One run, filled as the contract fills it."""

    row: TrainRow
    filled: FilledConfig
    step_s: float
    source: str
    model: str
    raw: dict[str, object]


def missing() -> str | None:
    """Say what stands in the way of reading the rows, or return None."""
    absent = [str(path) for path in (PUBLISHED, MEASURED) if not path.is_file()]
    if not absent:
        return None
    return f"no {' and no '.join(absent)}: the training tables need the published and measured rows"


def read_rows(catalogue: Catalogue) -> tuple[Rows, Counter[str]]:
    """Return all runs with a known step, and how many were left out by reason."""
    left_out: Counter[str] = Counter()
    found = [*_published(catalogue, left_out), *_measured(catalogue)]
    return assembled(found), left_out


def read_out_of_memory(catalogue: Catalogue) -> Rows:
    """Return the measured runs, those that ran out of memory with a step of NaN."""
    return assembled(_measured(catalogue, with_failed=True))


def pick(rows: Rows, index: NDArray[np.bool_] | NDArray[np.intp] | Sequence[int]) -> Rows:
    """Return some of the rows."""
    at = np.asarray(index)
    at = np.flatnonzero(at) if at.dtype == bool else at.astype(np.intp)
    values = {field.name: getattr(rows, field.name) for field in fields(Rows)}
    runs = rows.runs
    picked = {name: value[at] for name, value in values.items() if name != "runs"}
    return Rows(
        **picked,
        runs=Runs(
            take(runs.shape, at),
            take(runs.plans, at),
            take(runs.accelerator, at),
            runs.stack[at],
            runs.part[at],
        ),
    )


def full_sources(rows: Rows) -> set[str]:
    """Return the sources whose rows nearly all state their whole configuration."""
    told = np.array([_told(raw) for raw in rows.raw])
    sources = sorted(set(rows.source.tolist()))
    return {name for name in sources if told[rows.source == name].mean() >= FULL_SHARE}


def _told(raw: dict[str, object]) -> bool:
    if "step_ms" in raw:
        return True
    interleaved = bool(raw["vp"]) or raw["pp"] == "1"
    return interleaved and "unknown" not in str(raw["notes"]) and all(raw[key] for key in TELLING)


def assembled(found: Sequence[Observed]) -> Rows:
    """Gather runs into arrays; an unknown micro-batch is chosen with a plain profile.

    The contract chooses it with the stack's own profile, which the fit must not depend on.
    """
    shape = gather([training_shape(one.filled.shape) for one in found])
    part = gather([training_part(one.filled.part) for one in found])
    plans = gather([one.filled.plan for one in found])
    known = np.array([one.filled.micro_known for one in found])
    plain = TrainingProfile(
        flash=np.array([one.filled.entry.start.profile.flash for one in found], float)
    )
    plans = default_micro_batch(shape, plans, part, plain, known)
    keys = [stack_key(one.row.stack or "") for one in found]
    names = [one.filled.part.name for one in found]
    levels = [levels_of(key, name) for key, name in zip(keys, names, strict=True)]
    stacks = np.array([version_family(key) for key in keys])
    return Rows(
        rows=_objects([one.row for one in found]),
        runs=Runs(shape, plans, part, stacks, np.array(names)),
        step_s=np.array([one.step_s for one in found]),
        source=np.array([one.source for one in found]),
        model=np.array([one.model for one in found]),
        levels=np.array(levels),
        raw=_objects([one.raw for one in found]),
    )


def _objects(items: Sequence[object]) -> NDArray[np.object_]:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def _published(catalogue: Catalogue, left_out: Counter[str]) -> list[Observed]:
    found: list[Observed] = []
    with PUBLISHED.open(newline="") as lines:
        for raw in csv.DictReader(lines):
            if "LoRA" in raw["notes"]:
                left_out["trains adapters, not the model"] += 1
                continue
            row = published_row(raw)
            try:
                filled = fill(row, catalogue)
            except InputError as error:
                left_out[error.message] += 1
                continue
            step_s = _step_s(raw, filled)
            if step_s is None:
                left_out["no step time, tokens/s or model TFLOP/s"] += 1
                continue
            found.append(Observed(row, filled, step_s, raw["source"], raw["model"], dict(raw)))
    return found


def published_row(raw: dict[str, str]) -> TrainRow:
    """Return a line of the published table as a row of the contract."""
    batch, micro = _whole(raw["gbs"]), _whole(raw["mbs"])
    precision = _precision(raw["precision"])
    if raw["framework"] == FP8_RELEASE:
        precision = "fp8"
    if raw["source"].startswith("MaxText") and batch:
        # Its batch is stated per device and is never accumulated: one micro-batch holds it all.
        ranks = _whole(raw["dp"]) or int(raw["n_gpus"]) // (_whole(raw["tp"]) or 1)
        micro = batch // ranks
    return TrainRow(
        id=int(raw["row_id"]),
        model=_model(raw),
        accelerator=raw["accelerator"],
        gpus=int(raw["n_gpus"]),
        seq=_whole(raw["seq"]),
        micro_batch=micro,
        global_batch=batch,
        **{name: _whole(raw[name]) for name in ("tp", "pp", "dp", "cp", "ep")},
        virtual_stages=_whole(raw["vp"]),
        shard=_shard(raw["shard"]),
        recompute=_recompute(raw["recompute"]),
        sequence_parallel=raw["seq_par"] == "1" if raw["seq_par"] else None,
        precision=precision,
        stack=raw["framework"],
        nic_gbps_per_gpu=NARROW_NIC_GBPS if NARROW_NETWORK in raw["notes"] else None,
    )


def _model(raw: dict[str, str]) -> str | ShapeRow:
    if not raw["layers"]:
        return raw["model"]
    widths = {name: _whole(raw[name]) for name in ("kv_heads", "ffn", "vocab")}
    return ShapeRow(
        layers=int(raw["layers"]),
        hidden=int(raw["hidden"]),
        heads=int(raw["heads"]),
        gated=raw["gated"] == "1" if raw["gated"] else None,
        **widths,
    )


def _whole(text: str) -> int | None:
    return int(float(text)) if text else None


def _shard(text: str) -> Shard | None:
    spelled = text.lower()
    if "zero2" in spelled or spelled == "shard_grad_op":
        return "zero2"
    if spelled.startswith("fsdp") or spelled == "full_shard":
        return "zero3"
    known: dict[str, Shard] = {"ddp": "none", "zero1": "zero1", "zero3": "zero3"}
    return known.get(spelled)


def _recompute(text: str) -> Recompute | None:
    known: dict[str, Recompute] = {"none": "none", "full": "full"}
    return known.get(text, "selective") if text else None


def _precision(text: str) -> Precision | None:
    spelled = text.lower()
    kinds: tuple[Precision, ...] = ("fp4", "fp8", "fp16")
    return next((kind for kind in kinds if kind in spelled), "bf16") if spelled else None


def _step_s(raw: dict[str, str], filled: FilledConfig) -> float | None:
    """Return the observed step: as printed, from tokens/s, or from TFLOP/s as the source counts."""
    batch, seq = float(filled.plan.global_batch), float(filled.plan.seq)
    gpus = float(filled.plan.gpus)
    if raw["iter_s"]:
        return float(raw["iter_s"])
    if raw["tok_s_gpu"]:
        return batch * seq / gpus / float(raw["tok_s_gpu"])
    if raw["model_tflops_gpu"]:
        flops = _flops_per_token(raw["source"], training_shape(filled.shape), seq)
        return batch * seq * flops / gpus / float(raw["model_tflops_gpu"]) / 1e12
    noted = re.search(r"~(\d+) s/iter", raw["notes"])
    return float(noted.group(1)) if noted else None


def _flops_per_token(source: str, shape: Shape, seq: float) -> float:
    layers, hidden, vocab = float(shape.layers), float(shape.hidden), float(shape.vocab)
    if "Korthikanti" in source:
        return 72 * layers * hidden**2 * (1 + seq / 6 / hidden + vocab / 12 / layers / hidden)
    dense, _, _ = parameters(shape)
    # Llama 3 counts half of the score matrix; NeMo 24.03 and MaxText before July 2025 all of it.
    seen = seq / 2 if "Llama 3 Herd" in source else seq
    scores = 12 * layers * float(shape.heads) * float(shape.qk_dim) * seen
    return 6 * (float(dense) + vocab * hidden) + scores


def _measured(catalogue: Catalogue, *, with_failed: bool = False) -> list[Observed]:
    return _timed(catalogue, MEASURED, H200, "pytorch-compile", with_failed=with_failed)


def _timed(
    catalogue: Catalogue, path: Path, source: str, stack: str, *, with_failed: bool
) -> list[Observed]:
    found: list[Observed] = []
    for number, line in enumerate(path.read_text().splitlines()):
        raw = json.loads(line)
        if "error" in raw and not with_failed:
            continue
        row = measured_row(raw, f"h200-{number}", stack)
        step_s = raw.get("step_ms", float("nan")) / 1e3
        label = f"h{raw['hidden']}-l{raw['layers']}"
        found.append(Observed(row, fill(row, catalogue), step_s, source, label, raw))
    return found


def measured_row(raw: dict[str, Any], name: str, stack: str) -> TrainRow:
    """Return a step measured on an H200 as the row that `estimate train` reads."""
    model = ShapeRow(
        **{key: raw[key] for key in ("layers", "hidden", "heads", "ffn", "vocab")},
        kv_heads=raw["kv"],
        gated=True,
        tied=False,
    )
    return TrainRow(
        id=name,
        model=model,
        accelerator="H200",
        gpus=1,
        seq=raw["seq"],
        micro_batch=raw["mbs"],
        global_batch=raw["mbs"] * raw["ga"],
        recompute=raw["recompute"],
        precision="bf16",
        stack=stack,
    )
