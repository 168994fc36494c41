"""Control groups of version 2 as the kernel makes them, not a folder that looks like them.

A process of its own mounts the tree in a private mount namespace, so nothing outside sees it.
Where the kernel gives the controllers to version 1, what needs them is skipped.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, os, subprocess, sys, time
from pathlib import Path
from tenfold.live.local.member.limits import ResourceLimits, detect_limits, PREFIX
root, own = sys.argv[1], f"{PREFIX}test-{os.getpid()}"
base = f"{root}/{own}"
os.mkdir(base)
told = {"controllers": Path(root, "cgroup.controllers").read_text().split()}
Path(root, "cgroup.subtree_control").write_text("+pids") if "pids" in told["controllers"] else None
limits = ResourceLimits("cgroup-v2", {"cpu": base, "memory": base, "pids": base})
group = limits.make("job.1", cpus_milli=0, memory_mib=0, pids=4)
member = subprocess.Popen(["sleep", "600"], preexec_fn=lambda: group.join(0))
told["joined"] = member.pid in limits.group("job.1").pids()
os.mkdir(f"{base}/job.1/nested")
told["pids_max"] = Path(base, "job.1", "pids.max").read_text().strip() \\
    if Path(base, "job.1", "pids.max").exists() else None
group.remove()
told["kept_with_a_process"] = os.path.isdir(f"{base}/job.1")
member.kill()
member.wait()
group.remove()
told["removed"] = not os.path.exists(f"{base}/job.1")
os.makedirs(f"{base}/job.2/a/b/c")
os.mkdir(f"{base}/job.3")
limits.sweep({"job.3"})
told["swept"] = sorted(one.name for one in Path(base).iterdir() if one.is_dir())
other = f"{root}/{PREFIX}gone-{os.getpid()}"
os.makedirs(f"{other}/job.9")
limits.remove_abandoned(time.time() + 3_600)
told["abandoned_left"] = os.path.exists(other)
limits.leave()
told["left"] = os.path.exists(base)
told["detected"] = detect_limits(own, root=root).kind
for one in (base, other):
    for found in sorted(Path(root).glob(f"{Path(one).name}*"), reverse=True):
        if found.is_dir():
            os.rmdir(found)
print(json.dumps(told))
"""
MOUNT = 'mount -t cgroup2 none "$0" && exec "$@"'


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a tree of control groups")
    root = tmp_path_factory.mktemp("cgroup2")
    mounted = ["unshare", "-m", "sh", "-c", MOUNT, str(root)]
    try:
        tried = subprocess.run([*mounted, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no `unshare` on this machine")
    if tried.returncode:
        pytest.skip(f"control groups of version 2 cannot be mounted here: {tried.stderr.strip()}")
    done = subprocess.run(
        [*mounted, sys.executable, "-c", PROGRAM, str(root)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_member_joins_its_group_and_the_group_goes_with_its_last_process(told: dict[str, Any]):
    assert told["joined"]
    assert told["kept_with_a_process"]
    assert told["removed"]


def test_groups_of_ended_attempts_and_of_killed_spawners_are_removed(told: dict[str, Any]):
    assert told["swept"] == ["job.3"]
    assert not told["abandoned_left"]
    assert not told["left"]


def test_processes_are_limited_where_the_kernel_gives_the_controller(told: dict[str, Any]):
    if "pids" not in told["controllers"]:
        pytest.skip("the controller `pids` belongs to control groups of version 1 here")
    assert told["pids_max"] == "4"


def test_a_tree_without_cpu_and_memory_is_not_chosen(told: dict[str, Any]):
    if {"cpu", "memory"} <= set(told["controllers"]):
        pytest.skip("this tree has both")
    assert told["detected"] != "cgroup-v2"
