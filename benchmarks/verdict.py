"""What a benchmark found against what it must not exceed, or must reach."""

import math
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
