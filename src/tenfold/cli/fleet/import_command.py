"""`tenfold fleet import|discover|merge`: options and output.

The fleet file goes to standard output unless `--out` names a file; notes go to standard
error, so `> fleet.toml` stays clean.
"""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.arguments import Json
from tenfold.cli.fleet import importing as fleet_import
from tenfold.cli.fleet.importing import NO_TARGET, ImportResult, ImportSummary, ImportTarget, Target
from tenfold.cli.output import print_file, print_json, print_note, show, table
from tenfold.files.fleet.merge import Capacity, CapacityView
from tenfold.report.figures import count

SOFTWARE = {
    "os": "OS",
    "kernel": "kernel",
    "driver": "GPU driver",
    "cuda": "CUDA",
    "nccl": "NCCL",
    "rocm": "ROCm",
    "container_runtimes": "container runtime",
    "orchestrators": "",
    "frameworks": "frameworks",
}
"""What software versions are called, in the order in which they are printed.

Node agents and schedulers come with their name.
"""

import_app = App(
    name="import",
    help="Write a fleet file from an existing cluster.",
    help_format="plaintext",
)


NO_IMPORT = ImportTarget()
Importing = Annotated[ImportTarget, Parameter(name="*")]
Writing = Annotated[Target, Parameter(name="*")]


@import_app.command(name="slurm")
def slurm_command(
    source: Annotated[
        Path | None,
        Parameter(
            help="Output of `scontrol show nodes --json`, or a slurm.conf (default: run `scontrol`"
            " on this machine)"
        ),
    ] = None,
    /,
    *,
    target: Importing = NO_IMPORT,
    as_json: Json = False,
) -> None:
    """Import a Slurm cluster: live, from saved `scontrol show nodes` output, or a slurm.conf."""
    _print(fleet_import.import_slurm(source, target), target.out, as_json)


@import_app.command(name="kubernetes")
def kubernetes_command(
    source: Annotated[Path, Parameter(help="Output of `kubectl get nodes -o json`")],
    /,
    *,
    target: Importing = NO_IMPORT,
    as_json: Json = False,
) -> None:
    """Import a Kubernetes cluster from `kubectl get nodes -o json` output."""
    _print(fleet_import.import_kubernetes(source, target), target.out, as_json)


@import_app.command(name="csv")
def csv_command(
    source: Annotated[Path, Parameter(help="CSV file with one row per node")],
    /,
    *,
    target: Importing = NO_IMPORT,
    as_json: Json = False,
) -> None:
    """Import nodes from a CSV file (name, accelerator, gpus, cpus, memory_gib, rack, site)."""
    _print(fleet_import.import_csv(source, target), target.out, as_json)


def discover_command(*, target: Writing = NO_TARGET, as_json: Json = False) -> None:
    """Describe this machine as a one-node fleet, with its software versions."""
    _print(fleet_import.discover(target), target.out, as_json)


def merge_command(
    *files: Annotated[Path, Parameter(help="Fleet files to merge")],
    target: Writing = NO_TARGET,
    prefix_nodes: Annotated[
        bool,
        Parameter(negative="", help="Prefix duplicate node names with the name of their fleet"),
    ] = False,
    as_json: Json = False,
) -> None:
    """Merge several fleets into one, and show capacity before and after."""
    _print(fleet_import.merge(files, target, prefix_nodes=prefix_nodes), target.out, as_json)


def _print(result: ImportResult, out: Path | None, as_json: bool) -> None:
    if as_json:
        print_json({"summary": result.summary, "notes": result.notes, "toml": result.toml})
        return
    for note in result.notes:
        print_note(note)
    if out is None:
        for line in _software_lines(result.summary):
            print_note(line)
        print_file(result.toml)
        return
    if isinstance(result.summary, CapacityView):
        _show_capacity(result.summary)
    else:
        _show_summary(result.summary)
    show(f"wrote {out}")


def _show_summary(summary: ImportSummary) -> None:
    rows = [
        [
            pool.pool,
            pool.site or "",
            f"{pool.nodes:,}",
            f"{pool.gpus_per_node} x {pool.accelerator}" if pool.accelerator else "CPU only",
            f"{pool.cpus_per_node or 0:,}",
            f"{pool.memory_gib_per_node or 0:,.0f}",
        ]
        for pool in summary.pools
    ]
    show(table("", ["pool", "site", ">nodes", "per node", ">CPUs", ">GiB"], rows), "")
    for line in _software_lines(summary):
        show(line)


def _software_lines(summary: ImportSummary | CapacityView) -> list[str]:
    """Return one line per set of software versions; more than one line means drift."""
    if isinstance(summary, CapacityView):
        return []
    lines: list[str] = []
    for one in summary.software:
        facts = [
            f"{label} {value if isinstance(value, str) else ', '.join(value)}".strip()
            for field, label in SOFTWARE.items()
            if (value := getattr(one.software, field))
        ]
        if facts:
            lines.append(f"software on {count(one.nodes, 'node')}: {'; '.join(facts)}")
    return lines


def _show_capacity(view: CapacityView) -> None:
    def row(label: str, one: Capacity) -> list[str]:
        parts = ", ".join(f"{gpus:,} {part}" for part, gpus in one.gpus_by_accelerator.items())
        figures = (one.sites, one.nodes, one.gpus, one.gang_gpus_max)
        return [label, *(f"{figure:,}" for figure in figures), parts]

    rows = [row(one.fleet, one) for one in view.before]
    rows.append(row("merged", view.after))
    columns = ["fleet", ">sites", ">nodes", ">GPUs", ">largest gang", "accelerators"]
    show(table("", columns, rows), "")
