"""`tenfold bench`: public scale tests of other schedulers, next to the published results."""

from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.arguments import Json
from tenfold.cli.output import print_json, show, table
from tenfold.study.bench.figures import Bench, Figure

app = App(
    name="bench",
    help="Run the public scale tests of Kueue and KAI next to their published results.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
Restart = Annotated[
    bool,
    Parameter(negative="", help="Restart preempted jobs from the beginning, as Kueue's test does"),
]


@app.command(name="kueue-baseline")
def kueue_baseline(*, restart: Restart = False, as_json: Json = False) -> None:
    """Run the Kueue baseline benchmark: 15,000 workloads of three sizes, 30 queues with quotas."""
    _kueue("kueue-baseline", restart=restart, as_json=as_json)


@app.command(name="kueue-large")
def kueue_large(*, restart: Restart = False, as_json: Json = False) -> None:
    """Run the Kueue large-scale benchmark: 50,000 workloads of three sizes in 1,000 queues."""
    _kueue("kueue-large", restart=restart, as_json=as_json)


@app.command(name="kueue-tas")
def kueue_tas(*, restart: Restart = False, as_json: Json = False) -> None:
    """Run the Kueue topology-aware benchmark: 15,000 multi-pod workloads on 640 nodes in racks."""
    _kueue("kueue-tas", restart=restart, as_json=as_json)


@app.command(name="kai-fill")
def kai_fill(*, as_json: Json = False) -> None:
    """Run the KAI fill benchmark: 4,000 single-GPU jobs on 500 nodes."""
    _kai("kai-fill", as_json=as_json)


@app.command(name="kai-gang")
def kai_gang(*, as_json: Json = False) -> None:
    """Run the KAI large-gang benchmark: 512 pods on 512 nodes with three topology levels."""
    _kai("kai-gang", as_json=as_json)


@app.command(name="kai-unschedulable")
def kai_unschedulable(*, as_json: Json = False) -> None:
    """Run the KAI unschedulable-job benchmark: time to report that a job cannot start, and why."""
    _kai("kai-unschedulable", as_json=as_json)


@app.command(name="kai-reclaim")
def kai_reclaim(*, as_json: Json = False) -> None:
    """Run the KAI reclaim benchmark: 50 gangs reclaim GPUs from 4,000 jobs that borrowed them."""
    _kai("kai-reclaim", as_json=as_json)


def _kueue(name: str, *, restart: bool, as_json: bool) -> None:
    from tenfold.study.bench.kueue import bench_kueue  # noqa: PLC0415

    _print_bench(bench_kueue(name, restart=restart), as_json=as_json)


def _kai(name: str, *, as_json: bool) -> None:
    from tenfold.study.bench.kai import KAI  # noqa: PLC0415

    _print_bench(KAI[name](), as_json=as_json)


def _print_bench(bench: Bench, *, as_json: bool) -> None:
    if as_json:
        print_json(bench)
        return
    rows = [(each.name, _amount(each.ours, each.unit), _theirs(each)) for each in bench.figures]
    show(f"{bench.name}: {bench.title}", "")
    show(table("", ("", ">tenfold", ">published"), rows), "")
    show(f"tenfold: {bench.ours_include}", f"published: {bench.theirs_include}")
    show(f"source: {bench.theirs_from}")
    for note in bench.notes:
        show(f"note: {note}")


def _theirs(figure: Figure) -> str:
    return " to ".join(_amount(each, figure.unit) for each in figure.theirs)


def _amount(value: float, unit: str) -> str:
    """Return a figure with its unit; large times in ms become seconds."""
    if unit == "ms" and value >= 1_000:
        return _amount(value / 1_000, "s")
    if not unit or unit == "/s" or value >= 1_000:
        return f"{value:,.0f}{'' if unit == '/s' else ' ' * bool(unit)}{unit}"
    return f"{value:.3g} {unit}" if value < 1 else f"{value:.1f} {unit}"
