"""No request stops the loop: not one that is sent now, nor a job that is in the journal already."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from hostile.plane import API, Plane, Watch
from patience import until
from tenfold.clock.wall import now_ms
from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store
from tenfold.model.events import JobSubmitted
from tenfold.model.ids import TeamId
from tenfold.model.job.job import shape_of
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.job.submission import Submission, admitted
from tenfold.model.units import Millis

NUMBER = 900
COMMAND = ["true"]
ATTACKS: dict[str, dict[str, Any]] = {
    "checkpoint.dir": {"checkpoint": {"dir": "a\0b"}},
    "checkpoint.dir deep": {"checkpoint": {"dir": "a/" * 2_000}},
    "workdir": {"workdir": "a\nb"},
    "workdir deep": {"workdir": "a/" * 2_000},
    "image": {"image": "a\x1bb"},
    "name": {"name": "a\n"},
    "team": {"team": "red\n"},
    "env": {"env": {"A\n": "b"}},
    "env value": {"env": {"A": "\x9b2J"}},
    "command": {"command": ["true", "a\0b"]},
    "needs": {"needs": ["a\x07"]},
    "avoids": {"avoids": ["a\n"]},
    "after": {"after": ["a\0b"]},
    "accelerator": {"accelerator": "a\n"},
    "accelerator list": {"accelerator": ["a\n"]},
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_string_that_no_path_or_argument_may_have_is_refused(
    plane: Plane, watch: Watch, attack: str
):
    with plane.wire() as red:
        told = red.post(f"{API}/jobs", {"command": COMMAND, **ATTACKS[attack]})
    assert (told.status, told.code()) == (422, "wrong-value"), told
    field = attack.split(maxsplit=1)[0]
    assert told.json()["errors"][0]["field"].startswith(field)
    assert watch.alive() == []


def test_a_script_of_several_lines_is_still_an_argument(plane: Plane):
    with plane.wire() as red:
        told = red.post(f"{API}/jobs", {"command": ["sh", "-c", "true\n\ttrue\n"]})
    assert told.status == 201


def planted(plane: Plane, run_spec: RunSpec) -> str:
    """Put a job into the journal of a stopped control plane, as an earlier version took it."""
    submission = Submission(team=TeamId("red"), user="red", shape=shape_of(), run_spec=run_spec)
    at_ms = Millis(now_ms())
    [made] = admitted(submission, NUMBER, at_ms)
    store = open_store(plane.folder.journal)
    open_journal(store, "planted", at_ms).append([JobSubmitted(at_ms, made.job, made.run_spec)])
    store.close()
    return made.job.id


UNUSABLE = {
    "NUL in a folder": RunSpec(
        name="nul", command=("true",), checkpoint=CheckpointSpec(folder="a\0b")
    ),
    "NUL in a variable": RunSpec(name="env", command=("true",), env=(("A", "\0"),)),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_job_in_the_journal_that_cannot_start_leaves_the_control_plane_ready(
    own_plane: Callable[..., Plane], case: str
):
    own = own_plane()
    own.kill()
    job_id = planted(own, UNUSABLE[case])
    own.start()
    with own.wire() as red:

        def state() -> str:
            return json.loads(red.get(f"{API}/jobs/{job_id}").body)["state"]

        until(lambda: state() == "failed", explain=state)
        assert own.is_ready()
        made = red.post(f"{API}/jobs", {"command": COMMAND})
        assert made.status == 201
