"""Accuracy of steps and memory: sources left out whole, halves held out, and the H200."""

from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from benchmarks.planner.training_judge import Judge, Miss, ask, join, miss, observed
from benchmarks.planner.training_model import held_out_log_error
from benchmarks.planner.training_rows import H200, Rows, full_sources, pick, read_out_of_memory
from benchmarks.verdict import Verdict
from tenfold.model.facts.catalogue import Catalogue, FactTable

RUNS_MAX = 3
DRAWS, DRAWS_OF_MANY, MANY = 10, 4, 200
# What counts as a miss in the text below the table; verdicts take theirs from thresholds.toml.
AIM = 0.08
MEGATRON_CLASS = ("megatron", "megatron-core", "megatron-deepspeed")
WHY = {
    "BLOOM-176B": "one row, its step from memory, its network narrower than the row can say",
    "Llama 3 Herd Table 4": "three rows; virtual stages and true overlap not published",
    "MaxText README": "an unseen compiler on an unseen accelerator; batches of v5p not published",
    "MosaicML llm-foundry": "a 2023 stack alone on FSDP; its attention runs at half of later ones",
    "NVIDIA Megatron-Bridge perf summary": "every routed and fp4 row leaves with it; kernels jump "
    "by up to 1.5x between versions",
    "NVIDIA NeMo long-sequence": "2024 attention under ring exchange at 32k-1M tokens runs at half "
    "of what shorter sequences say",
    "TorchTitan benchmarks": "asynchronous TP (4-16%) and the fp8 recipe (1.4x) are not in the "
    "row; micro-batches of 405B are guessed",
    "vTrain ground truth multi node": "corrections learned on one node do not carry to many",
    "vTrain ground truth single node": "three random runs may hold none bound by launches",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Errors of a source that the fit never saw."""

    name: str
    family: str
    full: bool
    zero: Miss
    bare: Miss
    few: Miss | None


def leave_source_out(judge: Judge) -> list[Source]:
    """Return per source the errors with no row of it known, and with at most three a stack."""
    full = full_sources(judge.rows)
    found: list[Source] = []
    for name in judge.sources:
        rows, catalogue = judge.of_source(name), judge.without(name)
        plain = replace(catalogue, corrections=FactTable("correction", {}))
        found.append(
            Source(
                name=name,
                family=str(rows.levels[0, 0]),
                full=name in full,
                zero=miss(ask(rows, catalogue), rows),
                bare=miss(ask(rows, plain), rows),
                few=_calibrated(rows, catalogue),
            )
        )
    return found


def _calibrated(rows: Rows, catalogue: Catalogue) -> Miss | None:
    """Return errors of the rest after at most three runs a stack and accelerator are known."""
    pairs = zip(rows.levels[:, 2].tolist(), rows.runs.part.tolist(), strict=True)
    stacks = np.array(["|".join(pair) for pair in pairs])
    rng = np.random.default_rng(0)
    draws: list[Miss] = []
    for _ in range(DRAWS if len(rows) < MANY else DRAWS_OF_MANY):
        chosen = np.zeros(len(rows), bool)
        for stack in sorted(set(stacks.tolist())):
            own = np.flatnonzero(stacks == stack)
            chosen[rng.choice(own, min(RUNS_MAX, len(own) // 2), replace=False)] = True
        if not chosen.any():
            return None
        rest = pick(rows, ~chosen)
        draws.append(miss(ask(rest, catalogue, observed(pick(rows, chosen))), rest))
    return join(draws)


def print_sources(found: list[Source]) -> None:
    """Print the table of sources left out, then which miss the aim and why."""
    print("\nLeft out whole: error of the step, with no row of the source and with <=3 a stack")
    print(f"{'':38} {'':>4} {'':>4} | no rows known{'':22} | <=3 a stack")
    print(
        f"{'source':38} {'rows':>4} {'full':>4} | {'median':>6} {'p90':>6} {'bias':>6} {'in80':>4} "
        f"{'bare':>6}  | {'median':>6} {'p90':>6} {'in80':>4}"
    )
    for one in found:
        few, zero = one.few, one.zero
        full = "yes" if one.full else "no"
        before = f"{zero.median:6.1%} {zero.p90:6.1%} {zero.bias:+6.1%} {zero.covered:4.0%}"
        after = f"{few.median:6.1%} {few.p90:6.1%} {few.covered:4.0%}" if few else "too few rows"
        bare = f"{one.bare.median:6.1%}"
        print(f"{one.name:38} {len(zero.log):4} {full:>4} | {before} {bare}  | {after}")
    print("full: rows state their whole configuration; in80: share inside the 80% interval;")
    print("bare: median without corrections near published runs of the same family")
    print(f"above {AIM:.0%}:")
    for one in found:
        late = one.few is not None and one.few.median > AIM
        if one.zero.median > AIM or late:
            when = "also after calibration" if late else "before calibration only"
            print(f"  {one.name} ({when}): {WHY.get(one.name, 'not explained')}")


def source_verdicts(found: list[Source], thresholds: dict[str, float]) -> list[Verdict]:
    """Return what the left-out sources say against the aims."""
    zero_limit = thresholds["megatron_median_percent"]
    few_limit = thresholds["calibrated_median_percent"]
    classy = [one for one in found if one.family in MEGATRON_CLASS]
    pooled = 100 * join([one.zero for one in classy]).median
    middle = 100 * float(np.median([one.zero.median for one in classy]))
    over = [one for one in classy if 100 * one.zero.median > zero_limit]
    known = [one for one in found if one.full and one.few is not None]
    late = [one for one in known if one.few and 100 * one.few.median > few_limit]
    covered = 100 * join([one.few for one in found if one.few]).covered
    return [
        Verdict("zero rows, Megatron-class: median over all rows", pooled, zero_limit, "%"),
        Verdict("zero rows, Megatron-class: middle source's median", middle, zero_limit, "%"),
        Verdict(
            f"zero rows: sources above {zero_limit:g}% of {len(classy)} Megatron-class ones",
            len(over),
            thresholds["megatron_sources_above"],
        ),
        Verdict(
            f"<=3 rows: sources above {few_limit:g}% of {len(known)} with full configurations",
            len(late),
            thresholds["calibrated_sources_above"],
        ),
        Verdict(
            "<=3 rows: observed inside the 80% interval",
            covered,
            unit="%",
            at_least=thresholds["interval_covers_percent"],
        ),
    ]


def print_halves(judge: Judge) -> None:
    """Print errors of halves of all rows, each predicted from the other."""
    errors = np.abs(np.expm1(np.stack([judge.held, held_out_log_error(judge.rows, seed=4)])))
    print("\nHeld-out halves: each half predicted by profiles and corrections from the other")
    for name in judge.sources:
        own = errors[:, judge.rows.source == name]
        middle, most = np.median(own), np.quantile(own, 0.9)
        print(f"{name:38} {own.shape[1]:4} | median {middle:6.1%} p90 {most:6.1%}")
    print(f"{'all':38} {errors.shape[1]:4} | median {np.median(errors):6.1%}")


def h200(judge: Judge, thresholds: dict[str, float]) -> list[Verdict]:
    """Print predicted against measured on the H200, and judge steps, memory and refusals."""
    rows = read_out_of_memory(judge.shipped)
    unseen, shipped = ask(rows, judge.without(H200)), ask(rows, judge.shipped)
    peak = np.array([raw.get("peak_gib", np.nan) for raw in rows.raw], float)
    print("\nH200 (stack pytorch-compile): steps by a fit without these rows; memory as shipped,")
    print("whose four coefficients were fitted on these rows (left out one by one: 1.1% median)")
    head = f"{'model':10} {'micro':>5} {'recompute':>9} | {'step s':>7} {'seen':>7} {'':>6}"
    print(f"{head} | {'GiB':>6} {'seen':>6} {'':>6} {'fits':>5}")
    for at, raw in enumerate(rows.raw):
        step = _pair(unseen.step_s[at], rows.step_s[at], "7.3f")
        held = _pair(shipped.memory_gib[at], peak[at], "6.1f")
        said = "yes" if shipped.fits[at] else "no"
        label = f"{rows.model[at]:10} {raw['mbs']:5} {raw['recompute']:>9}"
        print(f"{label} | {step} | {held} {said:>5}")
    ran = ~np.isnan(peak)
    part = judge.shipped.accelerators.get("H200")
    near = np.abs(shipped.memory_gib / (part.memory_bytes / (1 << 30)) - 1) <= 0.06
    wrong = int(np.sum(((shipped.fits > 0) != ran) & ~near))
    step_error = np.abs(unseen.step_s / rows.step_s - 1)
    memory_error = np.abs(shipped.memory_gib / peak - 1)
    print(f"worst: step {np.nanmax(step_error):.1%}, memory {np.nanmax(memory_error):.1%}")
    return [
        Verdict(
            "H200 step, left out whole: median",
            100 * float(np.nanmedian(step_error)),
            thresholds["h200_step_percent"],
            "%",
        ),
        Verdict(
            "H200 memory: median",
            100 * float(np.nanmedian(memory_error)),
            thresholds["h200_memory_percent"],
            "%",
        ),
        Verdict("H200 wrong out-of-memory calls", wrong, thresholds["h200_memory_calls_wrong"]),
    ]


def _pair(said: float, seen: float, form: str) -> str:
    gap = "   oom" if np.isnan(seen) else f"{said / seen - 1:+6.1%}"
    return f"{said:{form}} {seen:{form}} {gap}"
