"""Ask a running Slurm for its nodes through its own command."""

import subprocess

from tenfold.model.errors import Unreachable

TIMEOUT_S = 60
COMMAND = ("scontrol", "show", "nodes")


def fetch_slurm_nodes(timeout_s: float = TIMEOUT_S) -> str:
    """Return what `scontrol show nodes` prints: JSON, or text where Slurm has no JSON."""
    answer = _run((*COMMAND, "--json"), timeout_s)
    if answer.returncode != 0 and _has_no_json(answer.stderr):
        answer = _run(COMMAND, timeout_s)
    if answer.returncode != 0:
        raise Unreachable(
            "slurm-unreachable",
            f"`{' '.join(COMMAND)}` failed: {_last_line(answer.stderr)}",
            "check that `sinfo` works here and that `SLURM_CONF` names the right cluster, "
            "or save the nodes elsewhere and import that file",
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
            "there is no `scontrol` here to ask Slurm with",
            "run this on a login node, or save `scontrol show nodes` there and name the file",
        ) from None
    except subprocess.TimeoutExpired:
        raise Unreachable(
            "slurm-unreachable",
            f"`{' '.join(command)}` gave no answer in {timeout_s:g} s",
            "check with `scontrol ping` that the controller is up",
        ) from None


def _has_no_json(complaint: str) -> bool:
    """Tell whether Slurm is too old for JSON (before 21.08) or built without it."""
    words = complaint.lower()
    return "option" in words or "json" in words or "serializer" in words


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"
