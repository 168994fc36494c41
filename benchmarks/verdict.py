"""What a benchmark found against what it must not exceed, or must reach."""

import math
from collections.abc import Mapping
from typing import NamedTuple


class Verdict(NamedTuple):
    name: str
    measured: float
    at_most: float = math.inf
    unit: str = ""
    at_least: float = -math.inf

    @property
    def held(self) -> bool:
        return self.at_least <= self.measured <= self.at_most

    def line(self) -> str:
        word = "held  " if self.held else "MISSED"
        bounds = [("at least", self.at_least), ("at most", self.at_most)]
        limits = [f"{how} {bound:g}{self.unit}" for how, bound in bounds if math.isfinite(bound)]
        return f"{word} {self.name}: {self.measured:.3g}{self.unit} ({', '.join(limits)})"


class Thresholds(dict[str, float]):
    """The thresholds of one benchmark, which note who asks for them."""

    def __init__(self, figures: Mapping[str, float]) -> None:
        super().__init__(figures)
        self._asked: dict[str, None] = {}

    def __getitem__(self, name: str) -> float:
        self._asked[name] = None
        return super().__getitem__(name)

    def get(self, name: str, default: float = math.inf) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        if name not in self:
            return default
        return self[name]

    def unchecked(self, benchmark: str) -> list[Verdict]:
        """Return a missed verdict for each threshold that no measurement was held against."""
        return [
            Verdict(f"{benchmark}: `{name}`, measurements held against it", 0, at_least=1)
            for name in self
            if name not in self._asked
        ]
