"""`tenfold squeue` on a control plane with a queue longer than it lists."""

import json
from collections.abc import Generator

import pytest
from msgspec.structs import replace

from patience import until
from tenfold.cli.main import main
from tenfold.cli.slurm import sinfo, views
from tenfold.model.api.nodes import Node
from unit.up_process import Up, commands_find, running

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Generator[Up, None, None]:
    with running(tmp_path_factory.mktemp("up") / "home", "--virtual-nodes", "1") as made:
        yield made


@pytest.fixture(autouse=True)
def _at(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    commands_find(up, monkeypatch)


def said(capsys: Printed, *words: str) -> tuple[str, str]:
    assert main(words) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def make_busy(capsys: Printed) -> None:
    """Let one job hold all GPUs, and another wait for them."""
    if " R " not in said(capsys, "squeue")[0]:
        said(capsys, "job", "submit", "--name", "first", "-G", "8", "--", "sleep", "600")
        until(lambda: " R " in said(capsys, "squeue")[0])
    if " PD " not in said(capsys, "squeue")[0]:
        said(capsys, "job", "submit", "--name", "next", "-G", "8", "--", "true")


def test_a_long_queue_does_not_hide_what_runs(capsys: Printed, monkeypatch: pytest.MonkeyPatch):
    said(capsys, "job", "submit", "--name", "first", "-G", "8", "--", "sleep", "600")
    until(lambda: " R " in said(capsys, "squeue")[0])
    for number in range(4):
        said(capsys, "job", "submit", "--name", f"w{number}", "-G", "8", "--", "true")
    monkeypatch.setattr(views, "LINES_MOST", 2)
    out, err = said(capsys, "squeue", "--noheader")
    assert [line.split()[2] for line in out.splitlines()] == ["w3", "w2", "first"]
    assert err == "note: 3 of 5 jobs; `tenfold job list -n 5` lists all\n"


def test_start_lists_pending_jobs_with_their_expected_start(capsys: Printed):
    make_busy(capsys)
    heading, *lines = said(capsys, "squeue", "--start")[0].splitlines()
    assert heading.split() == ["JOBID", "PARTITION", "NAME", "USER", "ST", "START_TIME"]
    assert {line.split()[4] for line in lines} == {"PD"}
    assert {line.split()[5] for line in lines} == {"unknown"}


def test_every_command_takes_a_member_by_the_id_or_the_number_of_its_array(capsys: Printed):
    make_busy(capsys)
    said(capsys, "job", "submit", "-J", "sweep", "-a", "2-3", "-G", "8", "--", "true")
    base = said(capsys, "squeue", "-n", "sweep", "-h")[0].split("[")[0].strip()
    number = base.rpartition("-")[2]
    for name in (f"{base}_3", f"{number}_3", f"{number}[3]", "sweep_3"):
        told = json.loads(said(capsys, "job", "show", name, "--json")[0])
        assert told["id"] == f"{base}[3]"
        assert said(capsys, "squeue", "-h", "-j", name)[0].split()[0] == f"{base}[3]"
    for command in ("why", "logs"):
        assert said(capsys, "job", command, f"{number}_3")[1].startswith(f"note: `{number}_3` is")
    listed = said(capsys, "job", "list", "--array", number)[0]
    assert "2 jobs" in listed
    assert said(capsys, "squeue", "-h", "-j", f"{number}")[0].split()[0] == f"{base}[2-3]"
    assert main(["job", "shell", f"{number}_3"]) == 3
    assert f"`{base}[3]`" in capsys.readouterr().err
    assert f"`{base}[3]` is cancelled" in said(capsys, "scancel", f"{number}_3")[0]
    said(capsys, "job", "rerun", f"{number}_3")
    # The rerun has the name of the array, but not its members.
    assert said(capsys, "job", "why", "sweep_3")[1].splitlines()[-1] == (
        f"note: `sweep_3` is `{base}[3]`"
    )
    assert main(["squeue", "-j", "9999_3"]) == 2
    assert "no job `9999_3`" in capsys.readouterr().err


def test_a_further_state_adds_jobs_and_all_has_those_that_ended(capsys: Printed):
    make_busy(capsys)
    said(capsys, "job", "submit", "-J", "late", "-c", "1", "-t", "0:01", "--", "sleep", "60")
    main(["job", "submit", "-J", "bad", "-c", "1", "--wait", "--", "false"])
    until(lambda: " TO " in said(capsys, "squeue", "-t", "TO")[0])
    for command in (("squeue", "-h"), ("job", "list", "-o", "job")):
        sizes = [
            len(said(capsys, *command, "-t", states)[0].splitlines())
            for states in ("TO", "F", "F,TO", "failed,timeout", "TO,F")
        ]
        assert sizes[0] == sizes[1] - 1
        assert len(set(sizes[1:])) == 1
    lines = said(capsys, "squeue", "-h", "-t", "all")[0].splitlines()
    codes = {line.split()[4] for line in lines}
    assert {"PD", "R", "F", "TO"} <= codes
    late = next(line.split()[0] for line in lines if " TO " in line)
    assert f"`{late}` was stopped at its time limit of 1 s" in said(capsys, "job", "logs", late)[1]


def test_a_user_without_a_machine_is_that_user_everywhere(capsys: Printed):
    make_busy(capsys)
    user = said(capsys, "squeue", "-h", "-o", "%u")[0].splitlines()[0]
    name = user.partition("@")[0]
    assert "@" in user
    everything = said(capsys, "squeue", "-h")[0]
    assert said(capsys, "squeue", "-h", "-u", name)[0] == everything
    assert said(capsys, "squeue", "-h", "-u", user)[0] == everything
    assert said(capsys, "squeue", "-h", "-u", f"{name}@elsewhere")[0] == ""
    assert said(capsys, "squeue", "-h", "-u", "somebody-else")[0] == ""
    first = everything.split()[0]
    assert said(capsys, "squeue", "-h", "-j", first, "-u", name)[0].split()[0] == first


def test_a_format_has_the_letters_and_widths_of_slurm(capsys: Printed):
    make_busy(capsys)
    heading, *lines = said(capsys, "squeue", "-o", "%i|%.6j|%T|%t|%a|%P|%D|%l")[0].splitlines()
    assert heading == "JOBID|  NAME|STATE|ST|ACCOUNT|PARTITION|NODES|TIME_LIMIT"
    assert any("| first|RUNNING|R|admin|virtual|1|UNLIMITED" in line for line in lines)
    assert said(capsys, "squeue", "-l")[0].split()[:3] == ["JOBID", "PARTITION", "NAME"]
    assert main(["squeue", "-o", "%q"]) == 2
    printed = capsys.readouterr().err
    assert "unknown field `%q`" in printed
    assert "%i JOBID" in printed


def test_partitions_are_pools_and_tags_and_others_are_named(capsys: Printed):
    make_busy(capsys)
    assert " R " in said(capsys, "squeue", "-p", "virtual")[0]
    assert "virtual" in said(capsys, "sinfo", "-h", "-p", "virtual")[0]
    for command in ("squeue", "sinfo"):
        assert main([command, "-p", "gpu"]) == 2
        assert "no partition `gpu`" in capsys.readouterr().err


def test_sinfo_takes_the_options_that_slurm_users_type(capsys: Printed):
    names = [line.split()[-1] for line in said(capsys, "sinfo", "-h", "-N")[0].splitlines()]
    printed = said(capsys, "sinfo", "-h", "-o", "%n|%G|%.9P|%t")[0].splitlines()
    assert [line.split("|")[0] for line in printed] == names
    assert all("gpu:virtual-gpu:8|  virtual|" in line for line in printed)
    # Nodes are apart only where a letter differs.
    together = said(capsys, "sinfo", "-o", "%P %D %f")[0].splitlines()
    assert together == ["PARTITION NODES AVAIL_FEATURES", f"virtual {len(names)} virtual"]
    brief = said(capsys, "sinfo", "-s")[0].splitlines()
    assert (len(brief), brief[0].split()[3]) == (2, "NODES(A/I/O/T)")
    assert brief[1].split()[3].endswith(f"/{len(names)}")
    assert "AVAIL_FEATURES" in said(capsys, "sinfo", "-N", "-l")[0]
    assert main(["sinfo", "-o", "%q"]) == 2
    assert "known fields: %P PARTITION" in capsys.readouterr().err
    assert main(["sinfo", "-s", "-l"]) == 2
    assert "use one of them" in capsys.readouterr().err


def test_sinfo_says_of_unknown_cpus_and_memory_that_they_are_not_known():
    node = Node(
        id="n1",
        site="x",
        pool="x",
        accelerator="H100",
        gpus=8,
        state="up",
        cause="",
        changed_at=None,
    )
    for one in (node, replace(node, cpus=0.0, memory_gib=0.0)):
        line = sinfo.NodeLine((one,))
        assert [sinfo.FIELDS[letter].text(line) for letter in "cmz"] == ["-", "-", "-"]
    known = sinfo.NodeLine((replace(node, cpus=96.0, memory_gib=512.0),))
    assert [sinfo.FIELDS[letter].text(known) for letter in "cmz"] == ["96", "524288", "96:512G"]


def test_squeue_prints_again_until_it_is_interrupted(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(views, "sleep", nap)
    printed = said(capsys, "squeue", "-i", "2")[0]
    assert (naps, printed.count("JOBID"), printed.count("every 2 s")) == ([2.0, 2.0], 2, 2)


def test_an_option_of_squeue_that_is_not_known_is_named_with_what_to_use(capsys: Printed):
    assert main(["squeue", "-S"]) == 2
    assert "lines are sorted by submission" in capsys.readouterr().err
