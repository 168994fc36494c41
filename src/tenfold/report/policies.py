"""What users need to know about the policy that places their jobs, in one line."""

from collections.abc import Mapping

RESERVES = ("governed", "slurm")
"""Policies under which a large job gets a reserved start."""
_ORDER: Mapping[str, str] = {
    "tenfold": "jobs with fewer GPUs and a shorter expected run time first; ignores `priority`",
    "fifo": "in the order of submission; ignores `priority`",
    "las": "jobs that have used the least GPU time first; ignores `priority`",
    "fair": "the team that holds the least goes first; ignores `priority`",
    "edf": "the earliest deadline first; ignores `priority`",
    "slurm": "multifactor priority; backfill reservations for large jobs",
    "governed": "team quotas, then `priority` within a team; backfill reservations for large jobs",
}


def policy_text(name: str) -> str:
    """Return a policy with what it orders jobs by."""
    return f"{name} ({_ORDER[name]})" if name in _ORDER else name
