"""Why something was decided or refused: a stable code and one sentence."""

from msgspec import Struct


class Reason(Struct, frozen=True, forbid_unknown_fields=True):
    """A kebab-case code for machines and a sentence for people."""

    code: str
    sentence: str


class Misfit(Struct, frozen=True):
    """An expected refusal: returned, never raised."""

    reasons: tuple[Reason, ...]
