"""Which policies look at which keys of a job file, so that nobody sets one in vain unknowingly.

Keys that are not listed mean the same under every policy: what a job needs of its nodes, its
time limit, `after`, `preemptible`. A key that a policy does not look at is no fault, since the
same file may go to another fleet; whoever hands it in is told.
"""

from collections.abc import Iterator
from typing import Literal

from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.job.submission import Submission
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy, PolicyName

Key = Literal["priority", "elastic", "off_peak", "kind", "within", "how"]

POLICIES_BY_KEY: dict[Key, tuple[PolicyName, ...]] = {
    "priority": ("governed", "slurm"),
    "elastic": ("governed",),
    "off_peak": ("governed",),
    "kind": ("governed",),
    "within": ("governed",),
    "how": ("governed",),
}
"""By key of a job file, the policies that look at it; all others pass it over."""
KEY_EFFECTS: dict[Key, str] = {
    "priority": "which of a team's jobs goes first; under `slurm`, of all jobs",
    "elastic": "whether it starts smaller, shrinks and grows; else it runs on `nodes`",
    "off_peak": "whether it waits for the hours under `off_peak` of the policy",
    "kind": "that an `interactive` session is not moved, and ended when idle; others are names",
    "within": "that its nodes share a rack, a leaf or what was asked for",
    "how": "how strictly they do",
}
"""What a policy that looks at a key decides by it."""

_NO_TERMS, _NO_PLACE = Terms(), PlacementConstraints()


def ignored_keys(policy: Policy, asked: Submission) -> tuple[str, ...]:
    """Return a sentence for every key that was set and that this policy does not look at."""
    if asked.priority == 0 and asked.terms is None and asked.shape.where is None:
        return ()
    notes = [
        f"the policy `{policy.name}` does not look at `{key}`: {_users(POLICIES_BY_KEY[key])}"
        for key in _keys_set(asked)
        if policy.name not in POLICIES_BY_KEY[key]
    ]
    terms = asked.terms or _NO_TERMS
    has_hours = policy.govern is not None and bool(policy.govern.off_peak)
    if policy.name == "governed" and terms.off_peak and not has_hours:
        notes.append("`off_peak` changes nothing: the policy `governed` names no off-peak hours")
    return tuple(notes)


def _keys_set(asked: Submission) -> Iterator[Key]:
    """Yield the keys of the table that a submission sets to something else than their default."""
    terms, where = asked.terms or _NO_TERMS, asked.shape.where or _NO_PLACE
    if asked.priority:
        yield "priority"
    if terms.least_gpus:
        yield "elastic"
    if terms.off_peak:
        yield "off_peak"
    if terms.kind == "interactive":
        yield "kind"
    if where.within:
        yield "within"
    if where.how != _NO_PLACE.how:
        yield "how"


def _users(policies: tuple[PolicyName, ...]) -> str:
    names = [f"`{name}`" for name in policies]
    return f"{' and '.join(names)} {'do' if len(names) > 1 else 'does'}"
