"""Read the nodes of a running Slurm with `scontrol`."""

import subprocess

from tenfold.model.errors import Unreachable

TIMEOUT_S = 60
COMMAND = ("scontrol", "show", "nodes")


def fetch_slurm_nodes(timeout_s: float = TIMEOUT_S) -> str:
    """Return the output of `scontrol show nodes`: JSON, or text if Slurm has no JSON."""
    answer = _run((*COMMAND, "--json"), timeout_s)
    if answer.returncode != 0 and _has_no_json(answer.stderr):
        answer = _run(COMMAND, timeout_s)
    if answer.returncode != 0:
        raise Unreachable(
            "slurm-unreachable",
            f"`{' '.join(COMMAND)}` failed: {_last_line(answer.stderr)}",
            "check that `sinfo` works here and that `SLURM_CONF` points to the right cluster, "
            "or save the output elsewhere and import that file",
        )
    return answer.stdout


def _run(command: tuple[str, ...], timeout_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
        )
    except (FileNotFoundError, PermissionError):
        raise Unreachable(
            "no-slurm-command",
            "`scontrol` is not installed here",
            "run this on a login node, or save `scontrol show nodes` there and import the file",
        ) from None
    except subprocess.TimeoutExpired:
        raise Unreachable(
            "slurm-unreachable",
            f"`{' '.join(command)}` timed out after {timeout_s:g} s",
            "run `scontrol ping` to check that the controller is up",
        ) from None


def _has_no_json(complaint: str) -> bool:
    """Return whether Slurm is too old for JSON (before 21.08) or built without it."""
    words = complaint.lower()
    return "option" in words or "json" in words or "serializer" in words


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no error message"
