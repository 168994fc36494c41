"""The history of a real control plane is usable: killed twice, it replays to the same decisions."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import tenfold
from patience import HANG_S
from unit.up_process import Up

JOBS = 12


def hand_in() -> list[str]:
    """Jobs of 1, 3, 5 and 7 GPUs, more than fit at once; return their names."""
    with tenfold.Client() as client:
        return [
            client.submit(
                name="nap", command=["sleep", f"{0.1 + number % 3 / 10}"], gpus_per_node=size
            ).id
            for number, size in enumerate([1, 3, 5, 7] * (JOBS // 4))
        ]


def asked(*words: str) -> dict[str, object]:
    """Return what `tenfold ... --json` says."""
    found = subprocess.run(
        [sys.executable, "-m", "tenfold", *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr + found.stdout
    return json.loads(found.stdout)


def scraped(home: Path) -> list[str]:
    """Return the lines of `/metrics`, asked for as commands on this machine ask."""
    address = json.loads((home / "address.json").read_text())
    asking = Request(
        f"{address['url']}/metrics", headers={"Authorization": f"Bearer {address['token']}"}
    )
    with urlopen(asking) as answer:
        return answer.read().decode().splitlines()


def test_a_control_plane_that_was_killed_twice_replays_to_the_same_decisions(
    up: Up, tmp_path: Path
):
    names: list[str] = []
    for policy in ("fifo", "fifo", "governed"):
        up.start("--virtual-nodes", "2", "--policy", policy, "--shadow", "las")
        names += hand_in()
        if policy == "fifo":
            up.kill()
    with tenfold.Client() as client:
        states = [client.wait(name, timeout_s=HANG_S).state for name in names]
    assert states == ["succeeded"] * 3 * JOBS

    # The control plane goes on meanwhile.
    found = asked("replay")
    assert found["same"] is True
    assert (found["policies"], found["orders"]) == (["fifo", "governed"], 3 * JOBS)
    assert found["starts"] == 3
    story = asked("replay", "--explain", names[0])
    assert story["state"] == "ended"
    diff = asked("replay", "--policy", "srtf")
    assert diff["policy_recorded"] == "fifo, then governed"
    again = diff["again"]
    assert isinstance(again, dict)
    assert again["finished"] == 3 * JOBS

    assert "tenfold_shadow_up 1.0" in scraped(up.home)
    bundle = str(tmp_path / "run.jsonl.gz")
    asked("replay", "--export", bundle)
    assert asked("replay", bundle)["same"] is True
    up.interrupt()
    shadow = asked("policy", "shadow")
    assert (shadow["policy"], shadow["failure"]) == ("las", "")
    cycles = shadow["cycles"]
    assert isinstance(cycles, int)
    assert cycles > 0
