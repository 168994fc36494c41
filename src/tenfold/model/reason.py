"""Why something was decided or refused: a stable code, and what it is about as data.

A reason is made where it arises and becomes a sentence only where somebody reads it, for what
that reader may know (`report/reasons/`). So whatever names a job, a team or a person is held by
a type of its own, with the team it belongs to: what to hide can be told without reading prose.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.ids import JobId, NodeId, TeamId


class _Stored(Struct, frozen=True, gc=False, tag_field="type", forbid_unknown_fields=True):
    """A value that says of itself what it is, also where it is stored."""


class JobRef(_Stored, frozen=True, gc=False, tag="job-ref"):
    """A job, and whose it is."""

    id: JobId
    team: TeamId | None = None
    """None where it is not known: then only readers of all teams see the name."""


class TeamRef(_Stored, frozen=True, gc=False, tag="team-ref"):
    """A team."""

    id: TeamId


class UserRef(_Stored, frozen=True, gc=False, tag="user-ref"):
    """A person or a token, as the record of the request names it."""

    name: str
    team: TeamId | None = None


class NodeRef(_Stored, frozen=True, gc=False, tag="node-ref"):
    """A node. Nodes belong to no team, and everybody may know them."""

    id: NodeId


class Amount(_Stored, frozen=True, gc=False, tag="amount"):
    """An amount of a resource that quotas count: thousandths of a GPU, or micro-USD an hour."""

    value: int
    unit: str


class Text(_Stored, frozen=True, gc=False, tag="text"):
    """Words from outside: an error message, a note by an operator. They may name anything."""

    text: str


class Causes(_Stored, frozen=True, tag="causes"):
    """The reasons behind a reason."""

    reasons: "tuple[Reason, ...]"


Ref = JobRef | TeamRef | UserRef | NodeRef | Amount | Text | Causes
Value = str | int | float | Ref | tuple[str | int | float | Ref, ...]
"""A plain text is a word of ours, a type, a pool or a place: nothing that belongs to a team."""


class Reason(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A kebab-case code, and the fields that the registry of reasons declares for it."""

    code: str
    fields: Mapping[str, Value] = {}
    sentence: str = ""
    """As records have it that were written when reasons were prose. It may name anybody."""


def joined(reasons: Sequence[Reason]) -> Reason:
    """Return the reasons of a refusal as one; several hold only together."""
    first, *more = reasons
    if not more:
        return first
    return replace(first, fields={**first.fields, "also": Causes(tuple(more))})


class Misfit(Struct, frozen=True):
    """An expected refusal: returned, never raised."""

    reasons: tuple[Reason, ...]
