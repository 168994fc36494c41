"""A work folder that is swapped for a link to another team's while containers start in it."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from time import monotonic, sleep

import pytest

from benchmarks.attacks.target import API, ENDED, Finding, Target, Tree, wait
from tests.engines.podman import IMAGE, podman_with_image
from tests.rigs.hostile.swaps import OWN, RESOLVES_LIKE_PODMAN, SECRET, Place, swapping

AT_ONCE = 20
STARTS, SECONDS = 300, 75.0


def swapped(tree: Tree) -> Iterator[Finding]:
    """No start may show the file of another team, whoever wins the race."""
    if os.getuid() != 0:
        yield Finding("a swapped work folder", "not tried: only root can become a team", True, "")
        return
    with ExitStack() as stack:
        target = Target(tree)
        stack.callback(target.close)
        fake = target.root / "bin"
        fake.mkdir()
        runtime = fake / "podman"
        runtime.write_text(RESOLVES_LIKE_PODMAN)
        runtime.chmod(0o755)
        yield _race(target, {"PATH": f"{fake}:{os.environ['PATH']}"}, "a runtime like podman")
    if shutil.which("podman") is None:
        yield Finding("real podman", "not tried: podman is not installed", True, "")
        return
    with ExitStack() as stack:
        target = Target(tree)
        stack.callback(target.close)
        try:
            podman = stack.enter_context(podman_with_image(target.root / "podman"))
        except pytest.skip.Exception as reason:
            yield Finding("real podman", f"not tried: {reason}", True, "")
            return
        yield _race(target, podman.environment, "real podman")


def _race(target: Target, variables: Mapping[str, str], runtime: str) -> Finding:
    target.variables.update(variables)
    target.start()
    red, blue = _user_of(target, "red"), _user_of(target, "blue")
    folder = target.root / "places"
    folder.mkdir()
    place = Place(folder, red, blue)
    (place.work / "secret").write_text(OWN)
    starts = leaked = own = 0
    ask = {"command": ["cat", "secret"], "image": IMAGE, "workdir": str(place.work)}
    ask |= {"array": AT_ONCE, "cpus_per_node": 0.1}
    ends_s = monotonic() + SECONDS
    with swapping(place.work, place.link, red), target.wire() as wire:
        while starts < STARTS and monotonic() < ends_s:
            made = wire.post(f"{API}/jobs", ask)
            if made.status != 201:
                sleep(0.2)
                continue
            for job_id in _ended(target, made.json()["id"], ends_s):
                said = target.log_of(job_id)
                starts += 1
                leaked += SECRET in said
                own += OWN in said
    return Finding(
        f"{runtime}, a work folder exchanged with a link",
        f"{starts} starts, {leaked} showed blue's file, {own} ran in red's folder;"
        f" readyz {target.readyz().status}",
        not leaked and own > 0,
        "0 show blue's file, some run in red's",
    )


def _user_of(target: Target, team: str) -> int:
    """Return the user that a team's jobs run as."""
    job_id = target.submit({"command": ["id", "-u"]}, team).json()["id"]
    target.end_of(job_id, team)
    return int(target.log_of(job_id, team))


def _ended(target: Target, array: str, ends_s: float) -> list[str]:
    """Return the members of an array that have ended, once all have or the time is up."""
    ended: list[str] = []

    def have_all() -> bool:
        with target.wire() as wire:
            rows = wire.get(f"{API}/jobs?array={array}&limit={AT_ONCE}").json()["jobs"]
        ended[:] = [
            str(one["id"]).replace("[", "%5B").replace("]", "%5D")
            for one in rows
            if one["state"] in ENDED
        ]
        return len(ended) == AT_ONCE

    wait(have_all, max(5.0, ends_s - monotonic()))
    return ended
