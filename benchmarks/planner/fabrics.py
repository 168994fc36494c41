"""The best layouts of one model by fabric and size: the table of docs/explanation/fabrics.md."""

import tempfile
from pathlib import Path

from benchmarks.planner.training_judge import Judge
from benchmarks.planner.training_rows import missing, read_rows
from benchmarks.planner.training_scaling import scaling_losses
from benchmarks.verdict import Verdict
from tenfold.decide.layout.families import family_of
from tenfold.decide.layout.outcome import Outcome
from tenfold.facts.loader import load_catalogue
from tenfold.model.reason import Misfit
from tenfold.study.plan.train import TrainQuestion, plan_training

MODEL, BATCH = "Llama 3.1 70B", 1024
SIZES = (64, 256, 1_024, 4_096)
FLEET = """\
[[site]]
name = "main"

[[fabric]]
name = "net"
kind = "{kind}"
link = "{link}"
{fabric}

[[pool]]
name = "a"
accelerator = "H100"
gpus_per_node = 8
nodes = {nodes}
fabric = "net"
{pool}
"""
STATIC, BLOCKED, COPIES = "adaptive_routing = false", "oversubscription = 4", "gpudirect = false"
NDR, ROCE = "InfiniBand-NDR", "RoCE-400"
FABRICS: dict[str, tuple[str, str, str, str]] = {
    "fat-tree, InfiniBand NDR": ("fat-tree", NDR, "", ""),
    "rails, InfiniBand NDR": ("rail-optimised", NDR, "", ""),
    "dragonfly, InfiniBand NDR": ("dragonfly", NDR, "", ""),
    "fat-tree, InfiniBand HDR": ("fat-tree", "InfiniBand-HDR", "", ""),
    "fat-tree, RoCE-400": ("fat-tree", ROCE, "", ""),
    "fat-tree, RoCE-400, static routing": ("fat-tree", ROCE, STATIC, ""),
    "rails, RoCE-400, static routing": ("rail-optimised", ROCE, STATIC, ""),
    "fat-tree, Ethernet-400": ("fat-tree", "Ethernet-400", "", ""),
    "fat-tree, InfiniBand NDR without GPUDirect": ("fat-tree", NDR, "", COPIES),
    "fat-tree, InfiniBand NDR, 4:1": ("fat-tree", NDR, BLOCKED, ""),
    "rails, InfiniBand NDR, 4:1": ("rail-optimised", NDR, BLOCKED, ""),
    "dragonfly, InfiniBand NDR, 4:1": ("dragonfly", NDR, BLOCKED, ""),
}
# Pairs of fabric and size of which the first is faster by more than a percent.
FASTER = (
    (("rails, InfiniBand NDR, 4:1", 256), ("fat-tree, InfiniBand NDR, 4:1", 256)),
    (("rails, RoCE-400, static routing", 256), ("fat-tree, RoCE-400, static routing", 256)),
    (("fat-tree, InfiniBand NDR", 1_024), ("fat-tree, InfiniBand HDR", 1_024)),
    (("fat-tree, RoCE-400", 1_024), ("fat-tree, RoCE-400, static routing", 1_024)),
    (("fat-tree, InfiniBand NDR", 1_024), ("fat-tree, InfiniBand NDR without GPUDirect", 1_024)),
    (("fat-tree, RoCE-400", 1_024), ("fat-tree, Ethernet-400", 1_024)),
    # Which of two networks is better depends on the size: a leaf of rails is not oversubscribed.
    (("rails, InfiniBand NDR, 4:1", 256), ("fat-tree, InfiniBand HDR", 256)),
    (("fat-tree, InfiniBand HDR", 1_024), ("rails, InfiniBand NDR, 4:1", 1_024)),
)
MARGIN = 1.01


def run(thresholds: dict[str, float]) -> list[Verdict]:
    """Print the table as the page shows it, and return how many rankings do not hold."""
    best = {(name, gpus): _best(name, gpus) for name in FABRICS for gpus in SIZES}
    print(f"steps of {MODEL} with {BATCH:,} sequences on H100, in seconds, best layout of each")
    print("| fabric | " + " | ".join(f"{gpus:,} GPUs" for gpus in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for name in FABRICS:
        print(f"| {name} | " + " | ".join(_cell(best[name, gpus]) for gpus in SIZES) + " |")
    wrong = [pair for pair in FASTER if best[pair[1]].step_s < MARGIN * best[pair[0]].step_s]
    for quick, slow in wrong:
        print(f"not faster: {quick[0]} than {slow[0]} at {slow[1]:,} GPUs")
    _anchors()
    layouts = {family_of(best[name, 1_024].plan) for name in FABRICS}
    return [
        Verdict("fabrics: rankings that do not hold", len(wrong), thresholds["rankings_wrong"]),
        Verdict(
            "fabrics: kinds of best layout at 1,024 GPUs",
            len(layouts),
            at_least=thresholds["layouts_at_least"],
        ),
    ]


def _best(name: str, gpus: int) -> Outcome:
    kind, link, fabric, pool = FABRICS[name]
    with tempfile.TemporaryDirectory() as folder:
        fleet = Path(folder) / "fleet.toml"
        text = FLEET.format(kind=kind, link=link, fabric=fabric, pool=pool, nodes=gpus // 8)
        fleet.write_text(text)
        answer = plan_training(
            TrainQuestion(model=MODEL, fleet=fleet, gpus=gpus, global_batch=BATCH)
        ).answer
    assert not isinstance(answer, Misfit), answer
    return answer.plans[0]


def _anchors() -> None:
    """Print published runs at several sizes: the loss of throughput per GPU, seen and predicted."""
    catalogue = load_catalogue()
    if absent := missing():
        print(f"\n{absent}; no published runs beside")
        return
    print("\npublished runs at several sizes, source left out: loss of throughput per GPU")
    print("| stack, accelerator, model | network per GPU | GPUs | seen | predicted |")
    print("|---|---|---|---|---|")
    for one in scaling_losses(Judge(read_rows(catalogue)[0], catalogue)):
        sizes = f"{one.gpus_from:,.0f} to {one.gpus_to:,.0f}"
        label = " ".join(one.label.split())
        print(
            f"| {label} | {one.network_gbps:,.0f} Gbit/s | {sizes} "
            f"| {one.observed:+.1%} | {one.predicted:+.1%} |"
        )


def _cell(one: Outcome) -> str:
    plan = one.plan
    degrees = [f"{key}{getattr(plan, key)}" for key in ("tp", "pp") if getattr(plan, key) > 1]
    return f"{one.step_s:.3g} ({' '.join(degrees) or 'dp'})"
