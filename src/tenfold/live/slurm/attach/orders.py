"""Release held jobs of a Slurm cluster on chosen nodes, and take that back.

Each order is one or two `scontrol` commands about one job. Nothing else in Slurm is changed.
"""

from collections.abc import Sequence

from tenfold.live.slurm.commands import CommandFailed, SlurmCommands

DENIED = ("invalid user id", "permission denied", "access denied")
"""In messages of `scontrol` about a job that this user may not change."""
BUSY = ("contact", "timed out", "temporarily", "try again", "connection", "communication")
"""In messages after which it is unknown whether the order was carried out."""


class OrderFailed(Exception):
    """Slurm refused an order, and nothing of it is left."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said
        self.is_denied = any(word in said.lower() for word in DENIED)


class SlurmOrders:
    """Orders about single jobs that wait."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands

    def release(self, job_id: str, nodes: Sequence[str], comment: str, before: str) -> None:
        """Release a held job that may start on these nodes only; `before` is its comment so far.

        Raise `OrderFailed` if Slurm refuses, `Unreachable` if it is not known what it did.
        """
        self._scontrol(
            "update", f"jobid={job_id}", f"nodelist={','.join(nodes)}", f"comment={comment}"
        )
        try:
            self._scontrol("release", job_id)
        except OrderFailed:
            self._scontrol("update", f"jobid={job_id}", "nodelist=", f"comment={before}")
            raise

    def hold(self, job_id: str, comment: str) -> None:
        """Hold a job as its user held it, without nodes; raise `OrderFailed` if it has started."""
        self.unbind(job_id, comment)
        self._scontrol("uhold", job_id)
        state = self._commands.run("scontrol", "show", "job", "--oneliner", job_id)
        if "JobState=PENDING" not in state:
            # It started between the two commands; held, it would not be requeued.
            self._scontrol("release", job_id)

    def unbind(self, job_id: str, comment: str) -> None:
        """Let Slurm choose the nodes of a job that waits; raise `OrderFailed` if it has started."""
        self._scontrol("update", f"jobid={job_id}", "nodelist=", f"comment={comment}")

    def _scontrol(self, *words: str) -> None:
        try:
            self._commands.run("scontrol", *words)
        except CommandFailed as failure:
            if any(word in failure.stderr.lower() for word in BUSY):
                raise
            lines = [line.strip() for line in failure.stderr.splitlines() if line.strip()]
            raise OrderFailed(lines[0][:200] if lines else "no error message") from None
