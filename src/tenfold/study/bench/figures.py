"""What a bench says: our figures beside published ones, and what each of them includes."""

from msgspec import Struct


class Figure(Struct, frozen=True, kw_only=True):
    """One figure of ours, and theirs where they publish it."""

    name: str
    ours: float
    unit: str
    theirs: tuple[float, ...] = ()
    """One figure, or the lowest and the highest; none where nothing comparable is published."""


class Bench(Struct, frozen=True, kw_only=True):
    """A public scale scenario, run."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    ours_include: str
    theirs_include: str
    theirs_from: str
    """Where their figures are published."""
    notes: tuple[str, ...] = ()
    """What differs between the two beyond that."""

    def ours(self, name: str) -> float:
        """Return one of our figures by its name."""
        return next(figure.ours for figure in self.figures if figure.name == name)
