"""Why something was decided or rejected: a stable code with typed fields.

A reason becomes a sentence only when it is shown, limited to what the reader may see
(`report/reasons/`). So every reference to a job, a team or a user has its own type and the team
it belongs to: what to hide can be decided without parsing text.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.ids import JobId, NodeId, TeamId


class _Stored(Struct, frozen=True, gc=False, tag_field="type", forbid_unknown_fields=True):
    """A value tagged with its type, also when stored."""


class JobRef(_Stored, frozen=True, gc=False, tag="job-ref"):
    """A job and its team."""

    id: JobId
    team: TeamId | None = None
    """None if unknown: then only readers of all teams see the name."""


class TeamRef(_Stored, frozen=True, gc=False, tag="team-ref"):
    """A team."""

    id: TeamId


class UserRef(_Stored, frozen=True, gc=False, tag="user-ref"):
    """A user or a token, as named in the recorded request."""

    name: str
    team: TeamId | None = None


class NodeRef(_Stored, frozen=True, gc=False, tag="node-ref"):
    """A node. Nodes belong to no team, and every reader may see them."""

    id: NodeId


class Amount(_Stored, frozen=True, gc=False, tag="amount"):
    """An amount of a quota resource: milli-GPUs, or micro-USD an hour."""

    value: int
    unit: str


class Text(_Stored, frozen=True, gc=False, tag="text"):
    """Free text: an error message, an operator's note. It may name anything."""

    text: str


class Causes(_Stored, frozen=True, tag="causes"):
    """The reasons behind a reason."""

    reasons: "tuple[Reason, ...]"


Ref = JobRef | TeamRef | UserRef | NodeRef | Amount | Text | Causes
Value = str | int | float | Ref | tuple[str | int | float | Ref, ...]
"""A plain string is a keyword, a type, a pool or a location: nothing that belongs to a team."""


NAMES_MOST = 3
"""Names of a list that a reason has; further ones are counted."""


class Reason(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A kebab-case code, and the fields that the registry of reasons declares for it."""

    code: str
    fields: Mapping[str, Value] = {}
    sentence: str = ""
    """The sentence of old records, from before reasons had fields. It may name anyone."""


def first_names(field: str, names: Sequence[str]) -> dict[str, Value]:
    """Return a field with the first names of a user's list, and how many more it has.

    Each job of an array has its own reason, so a reason must not repeat a long list.
    """
    fields: dict[str, Value] = {field: tuple(names[:NAMES_MOST])}
    if len(names) > NAMES_MOST:
        fields[f"{field}_more"] = len(names) - NAMES_MOST
    return fields


def joined(reasons: Sequence[Reason]) -> Reason:
    """Return the reasons of a rejection as one; several apply together."""
    first, *more = reasons
    if not more:
        return first
    return replace(first, fields={**first.fields, "also": Causes(tuple(more))})


class Misfit(Struct, frozen=True):
    """An expected rejection: returned, never raised."""

    reasons: tuple[Reason, ...]
