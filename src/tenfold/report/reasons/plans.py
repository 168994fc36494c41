"""Why a plan was chosen, and why the others were not."""

from tenfold.report.reasons.template import Template

FAMILIES = {
    "data": "data parallelism alone",
    "tensor": "tensor parallelism",
    "pipeline": "pipeline parallelism",
    "tensor-pipeline": "tensor and pipeline parallelism",
    "context": "context parallelism",
}
PARTS = {
    "compute_s": "compute in smaller, less efficient kernels",
    "recompute": "compute, because activations do not fit and the forward pass runs twice",
    "recompute-some": (
        "compute, because activations do not fit and part of the forward pass runs twice"
    ),
    "tp_s": "tensor-parallel communication in every layer",
    "moe_s": "expert all-to-all",
    "bubble_s": "pipeline bubbles",
    "p2p_s": "point-to-point sends between pipeline stages",
    "dp_s": "exposed gradient and weight communication",
    "optimizer_s": "the optimizer update",
    "other_s": "launch and step overhead",
    "jitter_s": "jitter",
}
GROWS = (
    "[time in {part:word} grows from {was:.0%} to {now:.0%} of a step"
    "|no single part of a step explains it]"
)
OF_MEMORY = "the smallest layout needs {least_bytes:GiB} per GPU, but a GPU has {room_bytes:GiB}"


def _family(code: str, name: str) -> dict[str, Template]:
    return {
        f"{code}-wins": Template(
            f"{name} is fastest: [{{whole:word}}|each GPU uses] {{memory_bytes:GiB}} of "
            "{room_bytes:GiB}; compute takes {compute:.0%} of a step, and the next largest part "
            "is {next:word} ({share:.0%})",
            whole={"yes": "without model parallelism, each GPU uses"},
            next=PARTS,
        ),
        f"{code}-slower": Template(
            f"{name}[ (tp {{tp}}[, pp {{pp}}][, cp {{cp}}])| (pp {{pp}}[, cp {{cp}}])| (cp {{cp}})]"
            " is {slower:.0%} slower: "
            "it spends {seconds:s} per step instead of {best:s} on {part:word}",
            part=PARTS,
        ),
        f"{code}-does-not-fit": Template(f"{name} does not fit: {OF_MEMORY}"),
    }


PLANS = {
    **{
        key: template
        for code, name in FAMILIES.items()
        for key, template in _family(code, name).items()
    },
    "data-not-whole": Template(
        "data parallelism alone does not work: {sequences:,} sequences per step cannot be split "
        "evenly across {ranks:#rank}"
    ),
    "no-whole-layout": Template(
        "[a layout with {fixed:words} needs at least {needed:#GPU}, more than the {gpus:,} "
        "available|no layout splits {model:word} evenly across {gpus:#GPU} with {sequences:,} "
        "sequences of {tokens:,} tokens per step[ and {fixed?:words}]]"
    ),
    "memory-exceeded": Template(
        f"{{model:word}} does not fit on [{{gpus:#GPU}}: {OF_MEMORY}|{{gpus:#GPU}} or fewer]"
    ),
    "batch-rounded": Template(
        "{asked:,} sequences per step do not divide evenly across {gpus:#GPU}: planned with "
        "{used:,}, the "
        "nearest batch that divides well"
    ),
    "batch-divides-poorly": Template(
        "{batch:,} sequences per step divide poorly across {gpus:#GPU}: {better:,} would train "
        "{faster:.0%} more tokens per second"
    ),
    "size-not-whole": Template(
        "{sizes:words} GPUs are not in the scaling curve: with {sequences:,} sequences per step "
        "and the given options, no layout uses exactly that many GPUs"
    ),
    "knee": Template(
        f"going from {{gpus:#GPU}} to {{next:,}} adds {{returned:.0%}} of the throughput that "
        f"linear scaling would: {GROWS}",
        part=PARTS,
    ),
    "returns-negative": Template(
        f"{{next:#GPU}} deliver less throughput than {{gpus:,}}: {GROWS}", part=PARTS
    ),
    "no-accelerators": Template("the fleet has no accelerators to serve on"),
    "weights-too-large": Template("not enough GPU memory for {candidates} of {of:#candidate}"),
    "no-load": Template("{candidates:#candidate} cannot meet the targets at any load"),
    "not-enough-gpus": Template(
        "[{asked:#GPU} requested, but the fleet has only {alike:,} identical GPUs on one fabric"
        "|at least {least:#GPU} needed in pool {pool:name}]"
    ),
    "cheapest": Template(
        "{replicas:#replica} of {each} x {accelerator:word} in {precision:word}: "
        "[${usd?:.2f} per million output tokens|no price known], up to {qps:.3g} requests/s each"
    ),
    "sized-by-tail": Template(
        "with {needed:#replica}, {attainment:.1%} of requests get their first token within "
        "{ttft_s:s} and the others within {tpot_s:s} each, and at least {free:.0%} of the capacity "
        "is free; with {spare:#spare replica} on top, {used:.0%} of the capacity is used"
    ),
    "ttft-missed": Template(
        "{candidates:#candidate} would miss the TTFT target of {limit_s:s} even for a single "
        "request; the best TTFT of any candidate is {best_s:s}"
    ),
    "tpot-missed": Template(
        "{candidates:#candidate} would miss the TPOT target of {limit_s:s} even for a single "
        "request; the best TPOT of any candidate is {best_s:s}"
    ),
    "tensor-crosses-domain": Template(
        "tp {tp} spans more than one scale-up domain of {domain:#GPU}: a step takes {step_s:s} "
        "instead of {inside_s:s} with tp {domain} ({slower:+.0%})"
    ),
    "at-the-top": Template("throughput still scales at {gpus:#GPU}, the largest size considered"),
    "at-the-knee": Template("{gpus:#GPU} is the knee of the scaling curve"),
    "deadline-met": Template(
        "{gpus:#GPU} is the cheapest size that meets the {limit:g}-day deadline[ and keeps the "
        "batch at {batch?:,}]: {days:.1f} days[, ${usd?:,.0f}]"
    ),
    "budget-met": Template(
        "{gpus:#GPU} is the fastest size within the ${limit:,.0f} budget[ that keeps the batch at "
        "{batch?:,}]: {days:.1f} days, ${usd:,.0f}"
    ),
    "deadline-missed": Template(
        "no size meets the {limit:g}-day deadline; the fastest is {gpus:#GPU}: "
        "{days:.1f} days[, ${usd?:,.0f}]"
    ),
    "budget-missed": Template(
        "no size fits the ${limit:,.0f} budget; the cheapest is {gpus:#GPU}: "
        "${usd:,.0f}, {days:.1f} days"
    ),
    "size-deadline-missed": Template(
        "{gpus:#GPU} miss the {limit:g}-day deadline: {days:.1f} days[, ${usd?:,.0f}]"
    ),
    "size-budget-missed": Template(
        "{gpus:#GPU} exceed the ${limit:,.0f} budget: ${usd:,.0f}, {days:.1f} days"
    ),
    "no-model": Template(
        "no model given: set `--model`, or `model` under `expects` in the fleet file"
    ),
    "deadline-before-quorum": Template(
        "quorum not reached: {quorum} of {per_round} sites must send updates within "
        "{deadline_s:,.0f} s, but {site:name} needs {needed_s:,.0f} s"
    ),
    "does-not-fit": Template(
        "{model:word} does not fit on the {accelerator:word} GPUs at {site:name} at this batch size"
    ),
}
