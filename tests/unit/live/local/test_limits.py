"""Where control groups of version 2 are made, on a tree that only looks like the kernel's."""

from pathlib import Path

from tenfold.live.local.member.limits import detect_limits

NAME = "tenfold-x"


def group(folder: Path, controllers: str, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("cgroup.procs", "cgroup.subtree_control", *names):
        (folder / name).write_text("")
    (folder / "cgroup.controllers").write_text(controllers)
    return folder


def own_path(root: Path, path: str) -> str:
    file = root.parent / "own"
    file.write_text(f"0::{path}\n")
    return str(file)


def kernel(tmp_path: Path) -> Path:
    """A shell's group, whose processes keep it from passing controllers on, below a user's."""
    root = group(tmp_path / "cgroup", "cpu memory pids")
    group(root / "user", "cpu memory")
    group(root / "user" / "shell", "cpu memory")
    group(root / "user" / "shell" / NAME, "")
    return root


def test_a_group_above_is_taken_where_ones_own_passes_nothing_on(tmp_path: Path):
    root = kernel(tmp_path)
    base = group(root / "user" / NAME, "cpu memory")
    group(base / "probe", "")
    limits = detect_limits(NAME, root=str(root), own=own_path(root, "/user/shell"))
    assert limits.kind == "cgroup-v2"
    job = group(base / "job.1", "", "memory.max", "memory.swap.max", "memory.oom.group")
    made = limits.make("job.1", cpus_milli=0, memory_mib=1)
    assert made.folders == [str(job)]
    assert (job / "memory.max").read_text() == str(1024 * 1024)
    assert (job / "memory.swap.max").read_text() == "0"
    assert (job / "memory.oom.group").read_text() == "1"
    (job / "memory.events").write_text("oom 1\noom_kill 3\n")
    assert made.ran_out_of_memory()


def test_a_group_that_no_process_can_be_moved_to_is_not_taken(tmp_path: Path):
    root = kernel(tmp_path)
    # A probe without its list of processes: to write there is not allowed.
    group(root / "user" / NAME, "cpu memory")
    base = group(root / NAME, "cpu memory")
    group(base / "probe", "")
    limits = detect_limits(NAME, root=str(root), own=own_path(root, "/user/shell"))
    assert limits.kind == "cgroup-v2"
    group(base / "job.1", "", "cpu.max")
    assert limits.make("job.1", cpus_milli=500, memory_mib=0).folders == [f"{base}/job.1"]


def test_without_a_group_that_serves_there_is_prlimit(tmp_path: Path):
    root = kernel(tmp_path)
    limits = detect_limits(NAME, root=str(root), own=own_path(root, "/user/shell"))
    assert limits.kind == "prlimit"


def test_a_path_of_another_view_is_not_followed(tmp_path: Path):
    root = group(tmp_path / "cgroup", "cpu memory")
    base = group(root / NAME, "cpu memory")
    group(base / "probe", "")
    limits = detect_limits(NAME, root=str(root), own=own_path(root, "/outside/of/this"))
    assert limits.kind == "cgroup-v2"
