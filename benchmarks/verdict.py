"""What a benchmark found against what it must not exceed."""

from typing import NamedTuple


class Verdict(NamedTuple):
    name: str
    measured: float
    at_most: float
    unit: str = ""

    @property
    def held(self) -> bool:
        return self.measured <= self.at_most

    def line(self) -> str:
        word = "held  " if self.held else "MISSED"
        limit = f"at most {self.at_most:g}{self.unit}"
        return f"{word} {self.name}: {self.measured:.3g}{self.unit} ({limit})"
