"""A shadow beside a live fleet changes nothing: the same jobs are placed alike with and without."""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tenfold.compose import live_shadow
from tenfold.files.records.shadow_log import last_entry
from tenfold.fleet.fleet import FleetView
from tenfold.journal.store import open_store
from tenfold.model.decision import Decision
from tenfold.model.events import Event, JobEnded, JobSubmitted
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.server.background import shadow as shadow_runner
from tenfold.server.background.shadow import ShadowRunner
from worlds.test_sim_is_live import (
    check_replay,
    crowd,
    ended,
    living,
    open_gate,
    simulated,
    starts,
)


class Broken:
    """A shadow that fails as soon as there is something to decide about."""

    name = "broken"

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        if view.pending:
            raise RuntimeError("this policy is not finished")
        return Decision()


@pytest.mark.parametrize("kind", ["another policy", "a broken one"])
def test_a_live_fleet_with_a_shadow_starts_what_it_would_have_without(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gates, ruled = tmp_path / "gates", Policy(name="fifo")
    gates.mkdir()
    batches = crowd(1, gates)
    script = simulated(batches, ruled)
    slots = dict(starts(script))
    for job_id, given in slots.items():
        for rank in range(len(given)):
            os.mkfifo(gates / f"{job_id}.{rank}")
    moments = sorted({event.at_ms for event in script if isinstance(event, JobSubmitted)})
    monkeypatch.setattr(shadow_runner, "POLL_S", 0.01)
    if kind == "a broken one":
        monkeypatch.setattr(live_shadow, "placing_decider", lambda policy: Broken())

    with living(tmp_path, ruled) as live:
        live.told.wait(lambda event: True)
        with closing(open_store(live.journal)) as store:
            shadow = ShadowRunner(store, Policy(name="las"), tmp_path / "shadow.jsonl")
            shadow.start()
            for event in script:
                if isinstance(event, JobSubmitted) and moments[0] == event.at_ms:
                    moments = [*moments[1:], Millis(-1)]
                    live.submit(next(one for one in batches if one.at_ms == event.at_ms))
                    live.told.wait(lambda one: isinstance(one, JobSubmitted), event.job.seq + 11)
                elif isinstance(event, JobEnded):
                    open_gate(gates, event.job_id, len(slots[event.job_id]))
                    live.told.wait(ended(event.job_id))
            shadow.stop()
            status = shadow.status()

    assert starts(check_replay(live, ruled)) == starts(script)
    said = last_entry(tmp_path / "shadow.jsonl")
    assert said is not None
    if kind == "a broken one":
        assert said.failure == status.failure == "RuntimeError: this policy is not finished"
    else:
        assert (said.failure, status.failure) == ("", "")
        assert said.cycles > 0
