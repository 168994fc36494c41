"""Result of a scale test: our figures, the published ones, and what each includes."""

from msgspec import Struct


class Figure(Struct, frozen=True, kw_only=True):
    """One figure of ours, and the published one if there is one."""

    name: str
    ours: float
    unit: str
    theirs: tuple[float, ...] = ()
    """One figure, or the lowest and the highest; empty if nothing comparable is published."""


class Bench(Struct, frozen=True, kw_only=True):
    """Result of a public scale test."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    ours_include: str
    theirs_include: str
    theirs_from: str
    """Source of the published figures."""
    notes: tuple[str, ...] = ()
    """Other differences between the two."""

    def ours(self, name: str) -> float:
        """Return one of our figures by its name."""
        return next(figure.ours for figure in self.figures if figure.name == name)
