"""The right to send one request to one target: a slot of a replica, or a place in an overflow."""

from typing import NamedTuple, Protocol


class Target(NamedTuple):
    """Where a request is sent."""

    name: str
    """What it is called in logs."""
    url: str
    """The address before the path."""
    key: str = ""
    """The name of the API key that it asks for; empty for none."""
    model: str = ""
    """The value of `model` that it knows; empty for that of the request."""


class Grant(Protocol):
    """A granted place; it ends exactly once, by `end`, `fail` or `abandon`."""

    target: Target
    is_away: bool
    """Whether it is an overflow, and not a replica."""

    def answered(self, now_s: float) -> None:
        """Note the first byte of a good answer."""
        ...

    def progressed(self, now_s: float, tokens: int) -> None:
        """Note tokens of the answer."""
        ...

    def end(
        self,
        now_s: float,
        input_tokens: int | None,
        output_tokens: int,
        *,
        failed: bool = False,
        blocked_s: float = 0.0,
    ) -> None:
        """Note the end of an answer, and the tokens in it; `failed` if it broke off.

        The client took nothing for `blocked_s` of the time.
        """
        ...

    def fail(self, now_s: float, *, is_unreachable: bool = False) -> None:
        """Note that there was no usable answer, before a byte was sent to the client."""
        ...

    def abandon(self, now_s: float) -> None:
        """Note that the request ended for a reason that is not the target's."""
        ...
