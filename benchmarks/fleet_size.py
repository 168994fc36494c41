"""A fleet of 1,000 to 100,000 nodes, loaded, checked and summed in a fresh process each.

Two files a size: `listed` names every node in a table of its own with its rack, so the
file grows with the fleet; `pooled` states the same nodes as host lists.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.verdict import Verdict

SIZES = (1_000, 10_000, 100_000)
NODES_PER_RACK = 4
PROGRAM = """
import json, sys
from pathlib import Path
from time import perf_counter, process_time
from tenfold.compose.fleet import check_fleet, load_facts, open_fleet
from tenfold.physics.blast import blast_radius
from tenfold.physics.totals import fleet_totals

def peak_mib():
    # Not ru_maxrss: a child begins with the peak of the process that started it.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

load_facts()
before, start, cpu = peak_mib(), perf_counter(), process_time()
opened = open_fleet(Path(sys.argv[1]))
loaded = perf_counter()
check = check_fleet(Path(sys.argv[1]))
checked = perf_counter()
totals = fleet_totals(opened.layout, opened.catalogue)
rows = blast_radius(opened.layout, opened.catalogue)
print(json.dumps({
    "nodes": totals.nodes, "gpus": totals.gpus, "racks": totals.racks,
    "faults": len(check.faults), "warnings": len(check.warnings), "domains": len(rows),
    "load_s": loaded - start, "check_s": checked - loaded, "sum_s": perf_counter() - checked,
    "cpu_s": process_time() - cpu, "memory_mib": peak_mib() - before,
}))
"""


def listed(nodes: int) -> str:
    lines = [
        '[[site]]\nname = "main"\nrack_kw = 45\n\n[[fabric]]\nname = "ib"\nnodes_per_leaf = 4\n',
        '[[pool]]\nname = "a"\naccelerator = "H100"\ngpus_per_node = 8\n',
    ]
    lines += [
        f'[[node]]\nname = "n{number}"\npool = "a"\nrack = "r{number // NODES_PER_RACK}"\n'
        for number in range(nodes)
    ]
    return "\n".join(lines)


def pooled(nodes: int) -> str:
    return (
        '[[site]]\nname = "main"\nrack_kw = 45\n\n[[fabric]]\nname = "ib"\nnodes_per_leaf = 4\n'
        f'[[pool]]\nname = "a"\naccelerator = "H100"\nnodes = {nodes}\ngpus_per_node = 8\n'
    )


def measure(path: Path) -> dict[str, float]:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], check=True, capture_output=True, text=True
    )
    return json.loads(result.stdout)


def run(thresholds: dict[str, float]) -> list[Verdict]:
    head = f"{'file':8} {'nodes':>8} {'MB':>6} {'load s':>7} {'check s':>8} {'sum s':>7} {'MiB':>7}"
    print(f"{head} {'us/node':>8} {'KiB/node':>9}")
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in (("listed", listed), ("pooled", pooled)):
            rows: dict[int, tuple[float, float]] = {}
            for size in SIZES:
                path = Path(folder) / f"{kind}-{size}.toml"
                path.write_text(make(size))
                found = measure(path)
                assert found["faults"] == found["warnings"] == 0, found
                total_s = found["load_s"] + found["check_s"] + found["sum_s"]
                rows[size] = (total_s, found["memory_mib"])
                print(
                    f"{kind:8} {size:8,} {path.stat().st_size / 1e6:6.1f} {found['load_s']:7.2f} "
                    f"{found['check_s']:8.2f} {found['sum_s']:7.2f} {found['memory_mib']:7.1f} "
                    f"{total_s / size * 1e6:8.1f} {found['memory_mib'] * 1024 / size:9.2f}"
                )
            small, large = rows[SIZES[0]], rows[SIZES[-1]]
            for name, place in (("time", 0), ("memory", 1)):
                growth = (large[place] / SIZES[-1]) / max(1e-9, small[place] / SIZES[0])
                limit = thresholds["growth_over_linear"]
                verdicts.append(
                    Verdict(f"{kind}: {name} a node, 100,000 over 1,000", growth, limit, "x")
                )
            limit = thresholds["seconds_at_100000"]
            verdicts.append(Verdict(f"{kind}: seconds at 100,000 nodes", large[0], limit, " s"))
    return verdicts
