"""Why a plan was chosen, and what kept others from it."""

from tenfold.report.reasons.template import Template

FAMILIES = {
    "data": "data parallelism alone",
    "tensor": "tensor parallelism",
    "pipeline": "pipeline parallelism",
    "tensor-pipeline": "tensor and pipeline parallelism",
    "context": "context parallelism",
}
PARTS = {
    "compute_s": "compute, in smaller and less efficient kernels",
    "recompute": "compute: activations do not fit, so the forward pass runs twice",
    "tp_s": "tensor-parallel communication in every layer",
    "moe_s": "expert all-to-all",
    "bubble_s": "pipeline bubbles",
    "p2p_s": "sends between pipeline stages",
    "dp_s": "exposed gradient and weight communication",
    "optimizer_s": "the optimizer update",
    "other_s": "launch and step overhead",
    "jitter_s": "jitter",
}
GROWS = "the share of {part:word} grows from {was:.0%} to {now:.0%} of a step"
OF_MEMORY = "its smallest layout takes {least_bytes:GiB} of {room_bytes:GiB} per GPU"


def _family(code: str, name: str) -> dict[str, Template]:
    return {
        f"{code}-wins": Template(
            f"{name} wins: [{{whole:word}}|split like this, a GPU] takes {{memory_bytes:GiB}} of "
            "{room_bytes:GiB}; {compute:.0%} of a step is compute, next is {next:word} "
            "({share:.0%})",
            whole={"yes": "the whole model fits on one GPU and"},
            next=PARTS,
        ),
        f"{code}-slower": Template(
            f"{name}[ (tp {{tp}}[, pp {{pp}}][, cp {{cp}}])| (pp {{pp}}[, cp {{cp}}])| (cp {{cp}})]"
            " is {slower:.0%} slower: "
            "{seconds:.3g} s of a step instead of {best:.3g} go to {part:word}",
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
        "data parallelism alone does not divide: {sequences:,} sequences a step over {ranks:#rank}"
    ),
    "no-whole-layout": Template(
        "no layout of {model:word} divides evenly over {gpus:#GPU}: {sequences:,} sequences of "
        "{tokens:,} tokens a step[, with {fixed?:words} fixed]"
    ),
    "memory-exceeded": Template(
        f"{{model:word}} does not fit on [{{gpus:#GPU}}: {OF_MEMORY}|up to {{gpus:#GPU}}]"
    ),
    "size-not-whole": Template(
        "no layout divides {sequences:,} sequences a step over {sizes:words} GPUs: left out of the "
        "curve"
    ),
    "knee": Template(
        f"beyond {{gpus:#GPU}}, going to {{next:,}} returns {{returned:.0%}} of its cost: {GROWS}",
        part=PARTS,
    ),
    "returns-negative": Template(
        f"throughput at {{next:#GPU}} is below that of {{gpus:,}}: {GROWS}", part=PARTS
    ),
    "no-accelerators": Template("the fleet has no accelerators to serve on"),
    "weights-too-large": Template("too large for memory: {candidates} of {of:#candidate}"),
    "no-load": Template("{candidates:#candidate} cannot take any load within the objectives"),
    "not-enough-gpus": Template(
        "[asks for {asked:#GPU}; the fleet has {alike:,} identical ones"
        "|at least {least:#GPU} needed, in pool {pool:name}]"
    ),
    "cheapest": Template(
        "{replicas:#replica} of {each} x {accelerator:word} in {precision:word}: "
        "[${usd?:.2f} per million output tokens|no price known], up to {qps:.3g} requests/s each"
    ),
    "ttft-missed": Template(
        "{candidates:#candidate} miss the TTFT of {limit_s:g} s even without load; the fastest "
        "takes {best_s:.3g} s"
    ),
    "tpot-missed": Template(
        "{candidates:#candidate} miss the TPOT of {limit_s:g} s even without load; the fastest "
        "takes {best_s:.3g} s"
    ),
    "tensor-crosses-domain": Template(
        "tp {tp} leaves the scale-up domain of {domain}: a step takes {step_s:.3g} s instead of "
        "{inside_s:.3g} with tp {domain} ({slower:+.0%})"
    ),
    "at-the-top": Template("every step up to {gpus:#GPU} still pays, and no larger size exists"),
    "at-the-knee": Template("{gpus:#GPU} is the knee of the scaling curve"),
    "deadline-met": Template(
        "{gpus:#GPU} is the cheapest size that meets the deadline of {limit:g} days: "
        "{days:.1f} days, ${usd:,.0f}"
    ),
    "budget-met": Template(
        "{gpus:#GPU} is the fastest size within the budget of ${limit:,.0f}: "
        "{days:.1f} days, ${usd:,.0f}"
    ),
    "deadline-missed": Template(
        "no size meets the deadline of {limit:g} days; the closest is {gpus:#GPU} with "
        "{days:.1f} days and ${usd:,.0f}"
    ),
    "budget-missed": Template(
        "no size meets the budget of ${limit:,.0f}; the closest is {gpus:#GPU} with "
        "{days:.1f} days and ${usd:,.0f}"
    ),
    "no-model": Template(
        "no model given: use `--model`, or `model` of `expects` in the fleet file"
    ),
    "deadline-before-quorum": Template(
        "{quorum} of {per_round} sites must answer within {deadline_s:,.0f} s, but {site:name}, "
        "the next one needed, takes {needed_s:,.0f} s"
    ),
    "does-not-fit": Template(
        "{model:word} does not fit the {accelerator:word} of {site:name} at this batch size"
    ),
}
