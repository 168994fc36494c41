"""`tenfold up --shadow`: the policy that is tried beside the one that decides."""

import sys
from pathlib import Path

from tenfold.compose.inputs import policy_of
from tenfold.compose.policy_fleet import join_record
from tenfold.model.errors import InputError
from tenfold.model.policy.policy import ORACLES, Policy


def shadow_of(named: str | None, live: Policy, fleet: Path | None) -> Policy | None:
    """Return the policy on trial, with the teams of the fleet; None where there is none."""
    if named is None:
        return None
    stated = policy_of(named)
    if stated.name in ORACLES:
        raise InputError(
            "shadow-needs-durations",
            f"`{stated.name}` reads how long jobs will take, which nobody knows of live ones",
            f"try it on what has happened: `tenfold replay --policy {stated.name}`",
            field="--shadow",
        )
    joined, notes = join_record(stated, live, fleet)
    for note in notes:
        sys.stderr.write(f"note: {note}\n")
    return joined
