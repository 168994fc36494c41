"""Old attempt folders are removed as soon as a control plane leads, not an hour later."""

from collections.abc import Callable
from pathlib import Path
from threading import Event

from patience import until
from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store
from tenfold.live.local.attempt.pruning import AttemptRetention, Pruned
from tenfold.model.units import Millis
from tenfold.server.background.pruning import AttemptPruner


class Counting(AttemptPruner):
    """Counts what it was asked to do."""

    def __init__(self, folder: Path, may_run: Callable[[], bool]) -> None:
        store = open_store(str(folder / "journal.db"))
        open_journal(store, "test", Millis(0))
        super().__init__(folder / "run", AttemptRetention(), store, lambda: 0)
        self.may_run = may_run
        self.passes = 0

    def once(self) -> Pruned:
        self.passes += 1
        return super().once()


def test_a_control_plane_that_leads_late_removes_old_folders_when_it_does(tmp_path: Path):
    leads, looks = Event(), list[bool]()

    def may_run() -> bool:
        looks.append(leads.is_set())
        return leads.is_set()

    pruner = Counting(tmp_path, may_run)
    pruner.start()
    try:
        until(lambda: bool(looks))
        assert not pruner.passes
        leads.set()
        until(lambda: pruner.passes == 1)
    finally:
        pruner.stop()
