"""Files that pages show: each is read by the reader it is for, and must have no fault."""

import configparser
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import yaml

from docs.console_blocks import ROOT, Block
from tenfold.compose.fleet import check_fleet, load_facts
from tenfold.files.core.json_lines import read_json_lines
from tenfold.files.fleet.read import load_fleet
from tenfold.files.growth import read_grow
from tenfold.files.jobs.submission import read_submission
from tenfold.files.jobs.work_profiles import read_work_profiles
from tenfold.files.measured.read import read_measured as read_steps
from tenfold.files.measured.rows import read_measured as read_usage
from tenfold.files.policy.burst import read_burst
from tenfold.files.policy.read import read_policy
from tenfold.files.series.simulated_service import read_simulated_service
from tenfold.files.services.service import read_service
from tenfold.files.sites import read_sites
from tenfold.files.tiers import read_tiers
from tenfold.files.traces.grid_intensity import read_intensity
from tenfold.files.traces.node_faults import read_fault_trace
from tenfold.model.estimate import NoEstimate, ServeRow, TrainRow
from tenfold.study.estimate.serve import estimate_serve
from tenfold.study.estimate.train import estimate_train

DATA = ("toml", "yaml", "json", "csv", "ini")
LINKED = ROOT / "examples" / "edge-sites" / "fleet.toml"
SLURM_CONF = ROOT / "examples" / "batch-and-interactive" / "slurm.conf"


def _fleet(path: Path) -> None:
    assert check_fleet(path).faults == (), check_fleet(path).faults


def _burst(path: Path) -> None:
    read_burst(path, load_facts().accelerators)


def _sites(path: Path) -> None:
    """Check a sites file for a fleet with nodes at `north` and `south`; its files exist."""
    for row in tomllib.loads(path.read_text())["site"]:
        for key in ("conf", "token_file"):
            if key in row:
                (path.parent / row[key]).touch()
    nodes = '[[pool]]\nname = "{0}"\nsite = "{0}"\nshape = "DGX-H100"\nnodes = 1\n'
    sites = "".join(f'[[site]]\nname = "{name}"\n' for name in ("north", "south"))
    fleet = path.with_name("fleet-of-sites.toml")
    fleet.write_text(sites + nodes.format("north") + nodes.format("south"))
    read_sites(path, load_fleet(fleet, load_facts()))


def _links(path: Path) -> None:
    """Check that an example has these links."""
    shown, example = tomllib.loads(path.read_text()), tomllib.loads(LINKED.read_text())
    assert [link for link in shown["link"] if link not in example["link"]] == []


def _facts(path: Path) -> None:
    load_facts(path)


def _grow(path: Path) -> None:
    read_grow(path, load_facts())


def _train_rows(path: Path) -> None:
    found = estimate_train(read_json_lines(path, TrainRow), load_facts())
    assert [row.error for row in found if isinstance(row, NoEstimate)] == []


def _serve_rows(path: Path) -> None:
    found = estimate_serve(read_json_lines(path, ServeRow), load_facts())
    assert [row.error for row in found if isinstance(row, NoEstimate)] == []


def _policy(path: Path) -> None:
    # A policy may name the configuration of a Slurm beside it.
    shutil.copy(SLURM_CONF, path.parent)
    read_policy(path)


def _prometheus(path: Path) -> None:
    [scrape] = yaml.safe_load(path.read_text())["scrape_configs"]
    assert {"job_name", "authorization", "static_configs"} == set(scrape)


def _systemd(path: Path) -> None:
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment]  # names of keys keep their capitals
    unit.read_string(path.read_text())
    words = unit["Service"]["ExecStart"].split()
    assert words[1:] == ["up"]


READERS: dict[str, Callable[[Path], object]] = {
    "tiers": read_tiers,
    "facts": _facts,
    "faults": read_fault_trace,
    "burst": _burst,
    "sites": _sites,
    "fleet": _fleet,
    "grow": _grow,
    "intensity": read_intensity,
    "job": read_submission,
    "service": read_service,
    "links": _links,
    "policy": _policy,
    "profiles": read_work_profiles,
    "prometheus": _prometheus,
    "serve-rows": _serve_rows,
    "simulated-service": read_simulated_service,
    "steps": read_steps,
    "systemd": _systemd,
    "train-rows": _train_rows,
    "usage": read_usage,
}


def check_shown_file(block: Block, folder: Path) -> None:
    """Read a block as the kind of file that its mark names."""
    suffix = "jsonl" if block.kind == "json" else block.kind
    path = folder / f"shown-{block.line}.{suffix}"
    path.write_text("\n".join(block.lines) + "\n")
    READERS[block.name](path)
