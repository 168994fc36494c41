"""Remove old attempt folders by age and size, in its own thread."""

import logging
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from tenfold.journal.rows import JobWithAttempts
from tenfold.journal.store import Store
from tenfold.journal.tables import JOBS
from tenfold.live.executor import MemberLog
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.attempt.pruning import AttemptRetention, Pruned, prune
from tenfold.live.sites.folders import all_homes
from tenfold.model.errors import TenfoldError
from tenfold.model.job.job import ENDED
from tenfold.model.reason import Reason
from tenfold.server.background.background import BackgroundTask
from tenfold.server.problems import Problem

POLL_S = 3_600.0
LEAD_S = 1.0
"""Between two looks whether it leads: a control plane leads a moment after it started."""
END_S = 30.0
_LOG = logging.getLogger("tenfold.server")


class AttemptPruner(BackgroundTask):
    """Removes old folders as soon as it leads, and every hour.

    One that is being removed when the server stops is moved aside, and removed the next time.
    """

    def __init__(
        self, run: Path, kept: AttemptRetention, store: Store, now_ms: Callable[[], int]
    ) -> None:
        super().__init__("pruning", END_S)
        self._run, self._kept, self._store = run, kept, store
        self._now_ms = now_ms

    def once(self) -> Pruned:
        """Remove what is due."""
        ExecutorDir(str(self._run)).prepare()
        pruned = Pruned()
        for home in all_homes(str(self._run)):
            one = prune(ExecutorDir(home), self._kept, self._now_ms(), self._not_over)
            pruned = Pruned(
                folders=pruned.folders + one.folders,
                bytes_freed=pruned.bytes_freed + one.bytes_freed,
                bytes_left=pruned.bytes_left + one.bytes_left,
            )
        if pruned.folders:
            message = "removed %d attempt folders (%d bytes)"
            _LOG.info(message, pruned.folders, pruned.bytes_freed)
        return pruned

    def _not_over(self) -> frozenset[str]:
        question = select(JOBS.c.id).where(JOBS.c.state.not_in(ENDED))
        with self._store.reading() as connection:
            return frozenset(connection.execute(question).scalars())

    def work(self) -> None:
        """Run as soon as it leads, and every hour."""
        while not self.stopping.is_set():
            if not self.may_run():
                self.stopping.wait(LEAD_S)
                continue
            try:
                self.once()
            except (TenfoldError, OSError, SQLAlchemyError) as error:
                # Nothing is lost: the disk is only fuller than it needs to be.
                _LOG.error("could not remove old attempt folders: %s", error)
            self.stopping.wait(POLL_S)


def check_kept(log: MemberLog, story: JobWithAttempts, number: int) -> None:
    """Raise if an attempt ran and its log was removed since."""
    ran = any(one.number == number and one.started_ms and one.ended_ms for one in story.attempts)
    if log.is_removed and ran:
        raise Problem(
            410,
            Reason(
                "logs-pruned",
                sentence=f"the log of attempt {number} of `{story.job.id}` was removed",
            ),
            "logs are kept by age and size; see `tenfold up --keep-logs-days`",
        )
