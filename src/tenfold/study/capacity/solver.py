"""Solve linear programs with HiGHS through SciPy: the only module that knows the solver.

It stops after a number of branch-and-bound nodes or at a gap, never on a time limit, so a
program has the same answer on a slow machine.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from tenfold.decide.capacity.buildout.program import (
    Floats,
    Program,
    Relaxed,
    Solution,
    SolverLimits,
)
from tenfold.model.errors import InputError

OPTIMAL, LIMIT = 0, 1
"""Status codes of `scipy.optimize.milp`; 1 also stands for a limit on nodes."""


def solve(program: Program, limits: SolverLimits) -> Solution | None:
    """Return the best values within the limits; None if no values satisfy all rows."""
    optimize = _optimize()
    with _output_to_stderr():
        found: Any = optimize.milp(
            program.cost,
            constraints=optimize.LinearConstraint(_matrix(program), program.low, program.high),
            integrality=program.is_integer.astype(np.int64),
            bounds=optimize.Bounds(0.0, program.upper),
            options={"node_limit": limits.nodes, "mip_rel_gap": limits.gap, "presolve": True},
        )
    if found.x is None:
        return None
    values = np.array(found.x, dtype=np.float64)
    values = np.where(program.is_integer, np.rint(values), values)
    bound = found.mip_dual_bound
    return Solution(
        values=values,
        objective=float(program.cost @ values),
        bound=float(found.fun if bound is None else bound),
        is_optimal=found.status == OPTIMAL,
    )


def relax(program: Program) -> Relaxed | None:
    """Return the optimum without whole numbers, and what one more unit of each row is worth."""
    optimize = _optimize()
    matrix = _matrix(program)
    ends = [np.flatnonzero(np.isfinite(end)) for end in (program.high, program.low)]
    above, below = ends
    sparse = _sparse()
    found: Any = optimize.linprog(
        program.cost,
        A_ub=sparse.vstack([matrix[above], -matrix[below]], format="csr"),
        b_ub=np.concatenate([program.high[above], -program.low[below]]),
        bounds=np.column_stack([np.zeros(len(program.upper)), program.upper]),
        method="highs",
    )
    if found.status != OPTIMAL:
        return None
    worth = np.zeros(len(program.high))
    worth[above] = -np.array(found.ineqlin.marginals[: len(above)])
    return Relaxed(objective=float(found.fun), saved_per_unit=cast(Floats, worth))


def _matrix(program: Program) -> Any:
    shape = (len(program.low), len(program.cost))
    places = (program.at_row, program.at_column)
    return _sparse().csr_matrix((program.coefficient, places), shape=shape)


def _sparse() -> Any:
    from scipy import sparse  # noqa: PLC0415

    return sparse


@contextmanager
def _output_to_stderr() -> Generator[None, None, None]:
    """Keep standard output for data: HiGHS prints some remarks although it was told not to."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _optimize() -> Any:
    """Return SciPy's optimisers; they are slow to import and an extra."""
    try:
        from scipy import optimize  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "missing-extra",
            "`tenfold capacity plan` needs SciPy, which is not installed",
            "run `pip install 'tenfold[capacity]'`",
        ) from None
    return optimize
