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
from tenfold.model.errors import TenfoldError
from tenfold.model.job.job import ENDED
from tenfold.model.reason import Reason
from tenfold.server.background.background import BackgroundTask
from tenfold.server.problems import Problem

POLL_S = 3_600.0
END_S = 30.0
_LOG = logging.getLogger("tenfold.server")


class AttemptPruner(BackgroundTask):
    """Removes old folders at startup and every hour.

    One that is being removed when the server stops is moved aside, and removed the next time.
    """

    def __init__(
        self, run: Path, kept: AttemptRetention, store: Store, now_ms: Callable[[], int]
    ) -> None:
        super().__init__("pruning", END_S)
        self._home, self._kept, self._store = ExecutorDir(str(run)), kept, store
        self._now_ms = now_ms

    def once(self) -> Pruned:
        """Remove what is due."""
        self._home.prepare()
        pruned = prune(self._home, self._kept, self._now_ms(), self._not_over)
        if pruned.folders:
            message = "removed %d attempt folders (%d bytes)"
            _LOG.info(message, pruned.folders, pruned.bytes_freed)
        return pruned

    def _not_over(self) -> frozenset[str]:
        question = select(JOBS.c.id).where(JOBS.c.state.not_in(ENDED))
        with self._store.reading() as connection:
            return frozenset(connection.execute(question).scalars())

    def work(self) -> None:
        """Run now and every hour."""
        while True:
            try:
                self.once()
            except (TenfoldError, OSError, SQLAlchemyError) as error:
                # Nothing is lost: the disk is only fuller than it needs to be.
                _LOG.error("could not remove old attempt folders: %s", error)
            if self.stopping.wait(POLL_S):
                return


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
