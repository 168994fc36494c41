"""Fill in the defaults of a training configuration, and reject impossible ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tenfold.model.errors import InputError
from tenfold.model.estimate import GradientPrecision, ShapeRow, TrainConfig, TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.shape import ModelShape
from tenfold.model.fleet.hardware import Accelerator
from tenfold.model.plan import TrainPlan
from tenfold.physics.network import server_ports
from tenfold.physics.training.arrays import (
    PRECISION_CODES,
    RECOMPUTE_CODES,
    SHARD_CODES,
    Plans,
    Shape,
    gather,
)
from tenfold.physics.training.arrays import (
    Accelerator as PartArrays,
)
from tenfold.physics.training.calibration import Calibration, Runs, calibrate
from tenfold.physics.training.catalog import Entry, resolve, uncalibrated
from tenfold.physics.training.defaults import (
    default_micro_batch,
    default_scaleup_ranks,
    default_sequence_parallel,
    default_shard,
    default_virtual_stages,
)
from tenfold.physics.training.names import stack_key, version_family
from tenfold.physics.training.shapes import training_part, training_shape
from tenfold.report.figures import count

GRADIENT_BYTES: dict[GradientPrecision, float] = {"fp32": 4.0, "bf16": 2.0}
DEFAULT_VOCAB = 50_304
"""For rows without a vocabulary size: GPT-2's, padded; an assumption."""


def shape_of(model: str | ShapeRow, catalogue: Catalogue) -> ModelShape:
    """Return the shape of a preset's name or of a row of widths."""
    if isinstance(model, str):
        return catalogue.models.get(model).shape
    experts = model.experts or 0
    gated = bool(model.gated)
    default_ffn = 4 * model.hidden if not gated else 8 * model.hidden // 3
    ffn = model.ffn or default_ffn
    topk = (model.topk or 0) if experts else 0
    visited = topk + (model.shared_experts or 0)
    return ModelShape(
        layers=model.layers,
        hidden=model.hidden,
        heads=model.heads,
        kv_heads=model.kv_heads or model.heads,
        head_dim=model.head_dim or max(1, model.hidden // model.heads),
        ffn=ffn,
        vocab=model.vocab or DEFAULT_VOCAB,
        gated=gated,
        tied=bool(model.tied),
        experts=experts,
        experts_per_token=topk,
        shared_experts=model.shared_experts or 0,
        dense_layers=min(model.dense_layers or 0, model.layers) if experts else 0,
        # Dense layers among experts are as wide as what a token visits elsewhere.
        dense_ffn=ffn * visited if experts and model.dense_layers else None,
        context=0,
    )


DEFAULT_SEQ = 4096
DEFAULT_SEQ_OF_WIDTHS = 2048
DEFAULT_MICRO_BATCHES = 8
WHOLE_BATCH_FAMILIES = ("maxtext",)
"""Their batch is per device and never accumulated: one micro-batch holds all of it."""


@dataclass(frozen=True, slots=True)
class FilledConfig:
    """A configuration with every field known.

    `micro_known` is False where the search may choose the micro-batch.
    """

    config: TrainConfig
    shape: ModelShape
    part: Accelerator
    entry: Entry
    plan: Plans
    micro_known: bool
    notes: tuple[str, ...]


def fill(row: TrainConfig, catalogue: Catalogue) -> FilledConfig:
    """Return a configuration with defaults filled in, or raise `InputError`."""
    shape = row.shape if isinstance(row, TrainPlan) else shape_of(row.model, catalogue)
    part = catalogue.accelerators.get(row.accelerator)
    entry = resolve(catalogue, row.stack, part.name)
    tp, pp, dp, cp, ep = _degrees(row)
    _check_shape(shape, tp, pp * (row.virtual_stages or 1), ep)
    seq = row.seq or (DEFAULT_SEQ if isinstance(row.model, str) else DEFAULT_SEQ_OF_WIDTHS)
    notes = list(entry.notes)
    if row.precision is not None and part.peak_tflops(row.precision) is None:
        notes.append(f"{part.name} does not support {row.precision}: next wider precision used")
    if row.seq is None:
        notes.append(f"sequence length of {seq:,} tokens assumed")
    micro, batch = _batches(row, dp, entry.family, notes)
    nic_gbps = _network(row, part, catalogue, notes)
    sequence_parallel = row.sequence_parallel
    if sequence_parallel is None:
        sequence_parallel = default_sequence_parallel(entry.family, tp)
    # Layouts use powers of two, so a rack of 72 is used as 64.
    domain = float(1 << (part.scaleup_gpus.bit_length() - 1))
    per_node = None if row.gpus_per_node is None else float(row.gpus_per_node)
    plan = Plans(
        seq=float(seq),
        micro_batch=float(micro),
        global_batch=float(batch),
        gpus=float(row.gpus),
        tp=float(tp),
        pp=float(pp),
        dp=float(dp),
        cp=float(cp),
        ep=float(ep),
        virtual_stages=float(row.virtual_stages or 1),
        shard=float(SHARD_CODES[row.shard or default_shard(entry.family, float(dp * cp))]),
        recompute=float(RECOMPUTE_CODES[row.recompute or "selective"]),
        recompute_share=_recompute_share(row, shape, pp),
        sequence_parallel=float(sequence_parallel),
        precision=float(PRECISION_CODES[row.precision or "bf16"]),
        gradient_bytes=_gradient_bytes(row),
        scaleup_ranks=default_scaleup_ranks(domain, per_node),
        nic_bytes_s=nic_gbps / 8 * 1e9,
    )
    if not row.virtual_stages:
        stages = default_virtual_stages(
            training_shape(shape), plan, training_part(part), entry.start.profile
        )
        plan = replace(plan, virtual_stages=stages)
    micro_known = row.micro_batch is not None or entry.family in WHOLE_BATCH_FAMILIES
    return FilledConfig(row, shape, part, entry, plan, micro_known, tuple(notes))


def _recompute_share(row: TrainConfig, shape: ModelShape, pp: int) -> float:
    """Return the share of a stage's layers with full recompute, where recompute is full."""
    if not row.recompute_layers:
        return 1.0
    stage = -(-shape.layers // pp)
    if row.recompute != "full":
        raise InputError(
            "not-whole",
            "`recompute_layers` is set, but `recompute` is not `full`",
            "set `recompute` to `full`, or leave `recompute_layers` out",
        )
    if row.recompute_layers > stage:
        raise InputError(
            "not-whole",
            f"`recompute_layers` is {row.recompute_layers}, but a stage has {stage} layers",
            f"lower it to at most {stage}",
        )
    return row.recompute_layers / stage


def _gradient_bytes(row: TrainConfig) -> float:
    """Return bytes per gradient, 0 for those of the stack."""
    stated = row.gradient_precision if isinstance(row, TrainRow) else None
    return 0.0 if stated is None else GRADIENT_BYTES[stated]


def _degrees(row: TrainConfig) -> tuple[int, int, int, int, int]:
    tp, pp, cp, ep = row.tp or 1, row.pp or 1, row.cp or 1, row.ep or 1
    if row.dp is None and row.gpus % (tp * pp * cp):
        raise InputError(
            "not-whole",
            f"{row.gpus} GPUs is not a multiple of tp {tp} x pp {pp} x cp {cp}",
            "make `gpus` a multiple of their product",
        )
    dp = row.dp or row.gpus // (tp * pp * cp)
    if tp * pp * dp * cp != row.gpus:
        raise InputError(
            "not-whole",
            f"`gpus` is {row.gpus}, but tp {tp} x pp {pp} x dp {dp} x cp {cp} "
            f"is {tp * pp * dp * cp}",
            "change one of them, or leave `dp` out",
        )
    if ep > row.gpus // pp:
        raise InputError(
            "not-whole",
            f"ep {ep} is larger than the {row.gpus // pp} GPUs of a pipeline stage",
            "lower `ep`",
        )
    return tp, pp, dp, cp, ep


def _check_shape(shape: ModelShape, tp: int, chunks: int, ep: int) -> None:
    """Reject degrees that do not divide the model."""
    faults = (
        (
            shape.heads % tp,
            f"{shape.heads} attention heads are not divisible by tp {tp}",
            "lower `tp`",
        ),
        # Embedding and head may count as a layer each.
        (
            chunks > shape.layers + 2,
            f"{shape.layers} layers cannot be split into {chunks} stages",
            "lower `pp`",
        ),
        (ep > 1 and not shape.experts, f"ep {ep} needs a model with experts", "drop `ep`"),
        (
            shape.experts and shape.experts % ep,
            f"{shape.experts} experts are not divisible by ep {ep}",
            "lower `ep`",
        ),
        (
            shape.experts_per_token > max(shape.experts, 0),
            f"`topk` is {shape.experts_per_token}, but the model has {shape.experts} experts",
            "lower `topk`",
        ),
    )
    for wrong, message, hint in faults:
        if wrong:
            raise InputError("not-whole", message, hint)


def _batches(row: TrainConfig, dp: int, family: str, notes: list[str]) -> tuple[float, float]:
    """Return the micro-batch and the global batch, in sequences."""
    micro = float(row.micro_batch or 1)
    if family in WHOLE_BATCH_FAMILIES and row.global_batch is not None:
        return max(row.global_batch / dp, 1e-3), float(row.global_batch)
    if row.global_batch is None:
        notes.append(f"{DEFAULT_MICRO_BATCHES} micro-batches per rank assumed")
        return micro, micro * dp * DEFAULT_MICRO_BATCHES
    if row.global_batch < dp:
        idle = dp - int(row.global_batch)
        notes.append(
            f"with {count(int(row.global_batch), 'sequence')} per step, {idle:,} of the {dp:,} "
            "data-parallel ranks are idle"
        )
    if micro > row.global_batch / dp:
        notes.append("micro-batch reduced to a rank's share of the global batch")
        micro = row.global_batch / dp
    return micro, float(row.global_batch)


def _network(row: TrainConfig, part: Accelerator, catalogue: Catalogue, notes: list[str]) -> float:
    """Return the network rate per GPU in Gbit/s, as stated or as servers of this kind have it."""
    if row.nic_gbps_per_gpu:
        return row.nic_gbps_per_gpu
    ports = server_ports(part, row.gpus_per_node, catalogue)
    per_gpu = ports.nics * ports.gbps / ports.gpus
    if not ports.like and row.gpus > part.scaleup_gpus:
        notes.append(
            f"network of {per_gpu:g} Gbit/s per GPU assumed: no server with {part.name} is known; "
            "set `nic_gbps_per_gpu`"
        )
    return per_gpu


def runs_of(members: Sequence[FilledConfig]) -> Runs:
    """Return rows as arrays, with the micro-batch chosen where it is not given."""
    shape: Shape = gather([training_shape(one.shape) for one in members])
    part: PartArrays = gather([training_part(one.part) for one in members])
    plans: Plans = gather([one.plan for one in members])
    known = np.array([one.micro_known for one in members])
    if not known.all():
        profile = members[0].entry.start.profile
        plans = default_micro_batch(shape, plans, part, profile, known)
    stacks = [version_family(stack_key(one.config.stack or "")) for one in members]
    return Runs(shape, plans, part, np.array(stacks), np.array([one.part.name for one in members]))


def calibrated(entry: Entry, observed: Sequence[FilledConfig]) -> Calibration:
    """Return the efficiency profile of a stack, calibrated with observed runs of its family."""
    seen = [(one, one.config.step_s) for one in observed if isinstance(one.config, TrainRow)]
    timed = [(one, step_s) for one, step_s in seen if step_s is not None]
    if not timed:
        return uncalibrated(entry)
    seconds = np.array([step_s for _, step_s in timed])
    return calibrate(entry.start, runs_of([one for one, _ in timed]), seconds)
