"""Run Slurm's own commands, and count what that costs its controller."""

import os
import subprocess
from collections.abc import Mapping
from time import monotonic

from msgspec import Struct

from tenfold.model.errors import Unreachable

TIMEOUT_S = 60.0


class CommandCost(Struct):
    """What the commands so far have cost."""

    calls: int = 0
    seconds: float = 0.0
    bytes_read: int = 0


class CommandFailed(Unreachable):
    """A command ran and reported an error."""

    def __init__(self, command: tuple[str, ...], status: int, stderr: str) -> None:
        super().__init__(
            "slurm-unreachable",
            f"`{' '.join(command)}` failed: {_last_line(stderr)}",
            "check that `sinfo` works here and that `SLURM_CONF` points to the right cluster",
        )
        self.status = status
        self.stderr = stderr


class SlurmCommands:
    """Slurm's commands of one cluster: argv in, text out, never through a shell."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Take `environment` for another cluster than this shell's, through `SLURM_CONF`."""
        self._environment = None if environment is None else dict(environment)
        self._timeout_s = timeout_s
        self.cost = CommandCost()

    def run(self, *command: str, stdin: str = "", timeout_s: float | None = None) -> str:
        """Return what a command printed; raise `CommandFailed` if it reported an error."""
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        began_s = monotonic()
        try:
            answer = subprocess.run(
                command,
                capture_output=True,
                check=False,
                encoding="utf-8",
                errors="replace",
                env=self._environment,
                input=stdin,
                timeout=limit_s,
            )
        except (FileNotFoundError, PermissionError):
            raise Unreachable(
                "no-slurm-command",
                f"`{command[0]}` is not installed here",
                f"run this on a login node, or save `{' '.join(command)}` there and read the file",
            ) from None
        except subprocess.TimeoutExpired:
            raise Unreachable(
                "slurm-unreachable",
                f"`{' '.join(command)}` timed out after {limit_s:g} s",
                "run `scontrol ping` to check that the controller is up",
            ) from None
        finally:
            self.cost.calls += 1
            self.cost.seconds += monotonic() - began_s
        self.cost.bytes_read += len(answer.stdout)
        if answer.returncode != 0:
            raise CommandFailed(command, answer.returncode, answer.stderr)
        return answer.stdout

    def run_json(self, *command: str, timeout_s: float | None = None) -> str:
        """Return the JSON of a command, or its text if this Slurm has no JSON."""
        try:
            return self.run(*command, "--json", timeout_s=timeout_s)
        except CommandFailed as failure:
            if not has_no_json(failure.stderr):
                raise CommandFailed(command, failure.status, failure.stderr) from None
        return self.run(*command, timeout_s=timeout_s)


def own_environment(conf: str) -> dict[str, str]:
    """Return this process's environment with `SLURM_CONF` set to `conf`."""
    return {**os.environ, "SLURM_CONF": conf}


def has_no_json(complaint: str) -> bool:
    """Return whether Slurm is too old for JSON (before 21.08) or built without it."""
    words = complaint.lower()
    return "option" in words or "json" in words or "serializer" in words


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no error message"
