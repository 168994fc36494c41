"""A policy on trial beside a live fleet: it reads behind the loop, and is only written down."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from live_lives import Turns, live
from tenfold.cli.main import main
from tenfold.cli.up.inputs import shadow_of
from tenfold.compose import live_shadow
from tenfold.compose.live_shadow import LiveShadow
from tenfold.files.records.shadow_log import ShadowEntry, ShadowLog, last_entry, latest_entries
from tenfold.fleet.fleet import FleetView
from tenfold.journal.append import open_journal
from tenfold.journal.snapshots import restore, save_snapshot
from tenfold.journal.store import open_store
from tenfold.model.decision import Decision
from tenfold.model.errors import InputError
from tenfold.model.events import Event, JobEnded, JobStarted, JobSubmitted, NodeJoined
from tenfold.model.ids import JobId
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import Millis
from tenfold.server.background import shadow as shadow_runner
from tenfold.server.background.shadow import ShadowRunner
from tenfold.testing.builders import job, nodes
from tests.rigs.journal import export_older

BEGUN: Turns = [(1, [NodeJoined(Millis(1), node) for node in nodes(2)])]
CROWD: Turns = [
    (2_000, [JobSubmitted(Millis(2_000), job(2, 8))]),
    (3_000, [JobSubmitted(Millis(3_000), job(3, 16))]),
    (4_000, [JobSubmitted(Millis(4_000), job(4, 1))]),
]
"""`job-4` could start, and waits behind `job-3` where the line is kept."""
LATER: Turns = [
    (5_000, [JobSubmitted(Millis(5_000), job(5, 1))]),
    (6_000, [JobEnded(Millis(6_000), JobId("job-2"))]),
    (7_000, [JobEnded(Millis(7_000), JobId("job-3"))]),
]


class Trial:
    """A journal and the log of a shadow in one folder."""

    def __init__(self, folder: Path) -> None:
        self.journal, self.log = folder / "journal.db", folder / "shadow.jsonl"

    @contextmanager
    def shadow(self, policy: PolicyName) -> Iterator[LiveShadow]:
        """A shadow for as long as its thread would run; stopped, not killed."""
        log = ShadowLog(self.log)
        with closing(open_store(self.journal)) as store, closing(log):
            made = LiveShadow(store, Policy(name=policy), log)
            yield made
            made.mark()

    def follow(self, policy: PolicyName) -> ShadowEntry:
        """Let a shadow read to the end; return what it wrote last."""
        with self.shadow(policy) as shadow:
            while shadow.step():
                pass
        found = last_entry(self.log)
        assert found is not None
        return found


@pytest.fixture(name="trial")
def a_trial(tmp_path: Path) -> Trial:
    made = Trial(tmp_path)
    live(made.journal, "fifo", BEGUN)
    return made


def test_a_shadow_of_the_same_policy_never_differs(trial: Trial):
    assert trial.follow("fifo").kind == "begun"
    live(trial.journal, "fifo", [*CROWD, *LATER])
    found = trial.follow("fifo")
    assert (found.kind, found.cycles, found.cycles_differing) == ("mark", 6, 0)


def test_a_shadow_says_what_it_would_start_and_why_it_waits(trial: Trial):
    trial.follow("edf")
    live(trial.journal, "fifo", CROWD)
    found = trial.follow("edf")
    assert (found.kind, found.cycles, found.cycles_differing) == ("differs", 3, 1)
    assert (found.live, found.would_start) == ("fifo", 1)
    assert found.difference is not None
    assert found.difference.started == ("job-4",)
    assert found.said[0] == "it would start `job-4` on `n1`"
    assert found.said[1].startswith("`job-4` waits under `fifo`: ")


def test_the_policy_named_beside_a_shadow_is_the_one_that_decided_then(trial: Trial):
    trial.follow("edf")
    live(trial.journal, "fifo", CROWD)
    live(trial.journal, "governed", LATER[:1])
    with trial.shadow("edf") as shadow:
        for _ in range(3):
            assert shadow.step()
    [found] = latest_entries(trial.log, 1, ("differs",))
    assert found.live == "fifo"


@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_a_shadow_goes_on_where_it_was_after_kills_of_both(trial: Trial, ends: str):
    trial.follow("edf")
    live(trial.journal, "fifo", CROWD, ends=ends)
    trial.follow("edf")
    # A line that was cut in the middle is as if it had not been written.
    with trial.log.open("ab") as stream:
        stream.write(b'{"kind":"mark","at')
    live(trial.journal, "fifo", LATER)
    found = trial.follow("edf")
    assert found.passed_over == 0
    assert found.cycles == (6 if ends == "stopped" else 5)
    assert found.would_start > 0


def test_orders_of_a_controller_that_was_killed_are_held_against_the_shadow_too(trial: Trial):
    trial.follow("edf")
    live(trial.journal, "fifo", CROWD, ends="killed after orders")
    assert trial.follow("edf").cycles == 0
    begun: Event = JobStarted(Millis(3_000), JobId("job-2"))
    live(trial.journal, "fifo", [(3_000, [begun]), *CROWD[1:]])
    found = trial.follow("edf")
    assert (found.cycles, found.cycles_differing, found.would_start) == (4, 1, 1)


def test_cycles_that_were_asked_about_after_the_last_line_are_asked_again(trial: Trial):
    trial.follow("fifo")
    live(trial.journal, "fifo", [*CROWD, *LATER])
    log = ShadowLog(trial.log)
    with closing(open_store(trial.journal)) as store, closing(log):
        killed = LiveShadow(store, Policy(name="fifo"), log)
        assert killed.step()
        assert killed.step()
    assert trial.follow("fifo").cycles == 6


def test_another_policy_on_trial_begins_from_now(trial: Trial):
    trial.follow("edf")
    live(trial.journal, "fifo", CROWD)
    trial.follow("edf")
    found = trial.follow("las")
    assert (found.kind, found.cycles) == ("begun", 0)


def test_a_shadow_that_breaks_is_left_out_with_a_note(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
):
    class Broken:
        name = "broken"

        def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
            raise ZeroDivisionError("by nought")

    trial.follow("edf")
    live(trial.journal, "fifo", CROWD)
    with monkeypatch.context() as patched:
        patched.setattr(live_shadow, "placing_decider", lambda policy: Broken())
        found = trial.follow("edf")
    assert (found.kind, found.failure) == ("failed", "ZeroDivisionError: by nought")
    live(trial.journal, "fifo", LATER)
    again = trial.follow("edf")
    assert again.failure == ""
    assert again.passed_over > 0


def test_a_shadow_that_is_too_far_behind_goes_on_from_now(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(live_shadow, "EVENTS_BEHIND_MAX", 0)
    trial.follow("edf")
    live(trial.journal, "fifo", CROWD)
    with trial.shadow("edf") as shadow:
        while shadow.step():
            pass
        assert shadow.status().events_behind == 0
    found = last_entry(trial.log)
    assert found is not None
    assert found.passed_over == 5


def test_events_that_were_moved_away_are_passed_over(trial: Trial):
    trial.follow("edf")
    live(trial.journal, "fifo", CROWD)
    with closing(open_store(trial.journal)) as store:
        writer = open_journal(store, "test", 0)
        save_snapshot(writer, restore(store).fleet)
        assert export_older(writer, trial.log.parent) is not None
    live(trial.journal, "fifo", LATER)
    found = trial.follow("edf")
    assert found.passed_over > 0
    assert found.failure == ""


def test_a_shadow_that_thinks_for_too_long_is_left_out(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shadow_runner, "CYCLE_S_MAX", -1.0)
    with closing(open_store(trial.journal)) as store:
        slow = ShadowRunner(store, Policy(name="edf"), trial.log)
        slow.work()
        assert slow.status().failure == "it took 0 s for one cycle"
    found = last_entry(trial.log)
    assert found is not None
    assert (found.kind, found.failure) == ("failed", "it took 0 s for one cycle")


def test_a_shadow_whose_log_cannot_be_written_is_left_out(trial: Trial):
    with closing(open_store(trial.journal)) as store:
        mute = ShadowRunner(store, Policy(name="edf"), trial.log / "no" / "folder")
        mute.work()
        assert "cannot write its log" in mute.status().failure


def test_a_full_log_is_put_aside_and_the_newest_lines_are_found(tmp_path: Path):
    path = tmp_path / "shadow.jsonl"
    entry = ShadowEntry(kind="differs", at_ms=Millis(1), seq=1, cycle=1, policy=Policy())
    with closing(ShadowLog(path, bytes_most=2_000)) as log:
        for number in range(60):
            log.write(replace(entry, cycle=number))
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "shadow.jsonl",
        "shadow.jsonl.1",
        "shadow.jsonl.2",
        "shadow.jsonl.3",
    ]
    assert all(one.stat().st_size < 3_000 for one in tmp_path.iterdir())
    assert all(one.stat().st_mode & 0o077 == 0 for one in tmp_path.iterdir())
    found = [one.cycle for one in latest_entries(path, 20)]
    assert found == list(range(59, 39, -1))


def test_what_a_shadow_said_is_shown(
    trial: Trial, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TENFOLD_HOME", str(trial.log.parent))
    assert main(["policy", "shadow"]) == 2
    assert "tenfold up --shadow" in capsys.readouterr().err
    trial.follow("edf")
    live(trial.journal, "fifo", CROWD)
    trial.follow("edf")
    assert main(["policy", "shadow"]) == 0
    said = capsys.readouterr().out
    assert (
        "shadow policy `edf`, live policy `fifo`: agrees in 67% of 3 cycles, differs in 1" in said
    )
    assert "it would start `job-4` on `n1`" in said
    assert main(["policy", "shadow", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cycles"], found["cycles_differing"]) == (3, 1)
    assert found["differences"][0]["started"] == ["job-4"]


def test_a_policy_that_needs_durations_is_no_shadow_of_a_live_fleet():
    with pytest.raises(InputError) as caught:
        shadow_of("srtf", Policy(), None)
    assert caught.value.code == "shadow-needs-durations"
    assert shadow_of(None, Policy(), None) is None
