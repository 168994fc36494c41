"""What is raised when a law does not hold: which law, and what was seen."""


class LawBroken(AssertionError):
    """A law of the core does not hold."""

    def __init__(self, law: str, sentence: str) -> None:
        super().__init__(f"law `{law}`: {sentence}")
        self.law = law


def hold(law: str, holds: bool, sentence: str) -> None:
    """Raise where a law does not hold."""
    if not holds:
        raise LawBroken(law, sentence)
