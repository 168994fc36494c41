"""Which keys of a job file each policy uses, so that an ignored key is reported.

Keys that are not listed mean the same under every policy: the resources of a job, its time
limit, `after`, `preemptible`. An ignored key is not an error, because the same file may be
submitted to another fleet; the user gets a notice.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import UNSET

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
"""The policies that use each key of a job file; all others ignore it."""
KEY_EFFECTS: dict[Key, str] = {
    "priority": "the order of a team's jobs, or of all jobs under `slurm`",
    "elastic": "the job may start smaller, shrink and grow; under other policies it always runs "
    "on exactly `nodes` nodes",
    "off_peak": "the job starts only in the hours listed under `off_peak` in the policy",
    "kind": "an `interactive` session is never moved and ends when idle; other values are labels",
    "within": "the topology level that the job's nodes should share, such as a rack or leaf",
    "how": "how strictly the nodes must share that level",
}
"""The effect of each key under a policy that uses it."""

_NO_TERMS, _NO_PLACE = Terms(), PlacementConstraints()


def ignored_keys(policy: Policy, submission: Submission) -> tuple[str, ...]:
    """Return a notice for each key that was set and that this policy ignores."""
    if submission.priority == 0 and submission.terms is None and submission.shape.where is None:
        return ()
    notes = [
        f"policy `{policy.name}` ignores `{key}`; {_users(POLICIES_BY_KEY[key])}"
        for key in _keys_set(submission)
        if policy.name not in POLICIES_BY_KEY[key]
    ]
    terms = submission.terms or _NO_TERMS
    has_hours = policy.govern is not None and bool(policy.govern.off_peak)
    if policy.name == "governed" and terms.off_peak and not has_hours:
        notes.append("`off_peak` has no effect: the policy `governed` defines no off-peak hours")
    return (*notes, *_data_notes(policy, terms))


def _data_notes(policy: Policy, terms: Terms) -> list[str]:
    """Return a notice if the data of a job does not count in the choice of a site."""
    if terms.data is UNSET:
        return []
    if policy.name == "slurm":
        return ["policy `slurm` ignores `data`: it does not compare sites"]
    known = {} if policy.sites is UNSET else policy.sites.data
    return [
        f"`data` has no effect for `{name}`: this fleet has no [[data]] of that name, or one site"
        for name in terms.data
        if name not in known
    ]


def _keys_set(submission: Submission) -> Iterator[Key]:
    """Yield the listed keys that a submission sets to something other than their default."""
    terms, where = submission.terms or _NO_TERMS, submission.shape.where or _NO_PLACE
    if submission.priority:
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
    return f"{' and '.join(names)} {'use' if len(names) > 1 else 'uses'} it"
