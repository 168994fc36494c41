"""A mixed-integer linear program as data, and what a solver returns.

The core does not know any solver: a program is columns with costs and bounds, and rows with a
range. Whoever solves it must be bounded by work and not by seconds, so that the same program has
the same answer on every machine.
"""

from collections.abc import Callable, Iterable, Mapping
from math import inf

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Key = tuple[str | int, ...]
"""What a column or a row is about, such as `("buy", 0, 12)`."""


class Program(Struct, frozen=True, kw_only=True):
    """Minimise cost over columns within their bounds, subject to rows within their range."""

    columns: Mapping[Key, int]
    cost: Floats
    upper: Floats
    """All lower bounds are 0."""
    is_integer: NDArray[np.bool_]
    rows: Mapping[Key, int]
    at_row: NDArray[np.int64]
    at_column: NDArray[np.int64]
    coefficient: Floats
    low: Floats
    high: Floats


class SolverLimits(Struct, frozen=True, kw_only=True):
    """When a solver stops: branch-and-bound nodes, and the gap that is close enough."""

    nodes: int = 2_000
    gap: float = 0.002


class Solution(Struct, frozen=True, kw_only=True):
    """The best values found, and how far they may be from the optimum."""

    values: Floats
    objective: float
    bound: float
    """No solution is better than this."""
    is_optimal: bool
    """Whether the gap was reached before the limit on nodes."""


class Relaxed(Struct, frozen=True, kw_only=True):
    """The optimum without whole numbers, and what one more unit of each row is worth."""

    objective: float
    saved_per_unit: Floats
    """By row: how far the cost falls if its upper end rises by one."""


Solve = Callable[[Program, SolverLimits], Solution | None]
"""Returns None if no values satisfy all rows."""
Relax = Callable[[Program], Relaxed | None]


class ProgramBuilder:
    """Collects columns and rows."""

    def __init__(self) -> None:
        self.columns: dict[Key, int] = {}
        self._cost: list[float] = []
        self._upper: list[float] = []
        self._integer: list[bool] = []
        self.rows: dict[Key, int] = {}
        self._entries: list[tuple[int, int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def column(
        self, key: Key, cost: float = 0.0, *, upper: float = inf, whole: bool = False
    ) -> int:
        """Add a column from 0 to `upper`."""
        assert key not in self.columns, f"column {key} is given twice"
        self.columns[key] = len(self._cost)
        self._cost.append(cost)
        self._upper.append(upper)
        self._integer.append(whole)
        return self.columns[key]

    def row(
        self,
        key: Key,
        terms: Iterable[tuple[int, float]],
        *,
        low: float = -inf,
        high: float = inf,
    ) -> None:
        """Add a row: the sum of terms is from `low` to `high`."""
        assert key not in self.rows, f"row {key} is given twice"
        place = len(self._low)
        self.rows[key] = place
        self._entries += [(place, column, factor) for column, factor in terms if factor]
        self._low.append(low)
        self._high.append(high)

    def program(self) -> Program:
        """Return what was collected."""
        entries = self._entries
        return Program(
            columns=self.columns,
            cost=np.array(self._cost),
            upper=np.array(self._upper),
            is_integer=np.array(self._integer, dtype=np.bool_),
            rows=self.rows,
            at_row=np.array([one[0] for one in entries], dtype=np.int64),
            at_column=np.array([one[1] for one in entries], dtype=np.int64),
            coefficient=np.array([one[2] for one in entries]),
            low=np.array(self._low),
            high=np.array(self._high),
        )
