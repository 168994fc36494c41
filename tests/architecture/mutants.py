"""Mutants: small wrongs of the code by name, each with the test that must fail for it.

A mutant is a line of a source file and what stands there instead. `load_mutated` is a plugin of
pytest (`-p architecture.mutants`): it reads the mutant's name from the environment and swaps the
line while the module is imported, so that no file is changed.
"""

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parents[2]
CHOSEN = "TENFOLD_MUTANT"


@dataclass(frozen=True)
class Mutant:
    """One line that is wrong, and who notices."""

    file: str
    """Below `src/tenfold`."""
    line: str
    becomes: str
    killed_by: str
    """A test, as pytest names it below `tests`."""

    @property
    def path(self) -> Path:
        return ROOT / "src" / "tenfold" / self.file

    @property
    def module(self) -> str:
        return ".".join(("tenfold", *Path(self.file).with_suffix("").parts))

    def source(self) -> str:
        """Return the file with the line swapped; it must stand there once."""
        text = self.path.read_text()
        count = text.count(self.line)
        assert count == 1, f"`{self.line}` stands {count} times in {self.file}, not once"
        return text.replace(self.line, self.becomes)


_HOLES = "unit/decide/place/reserve/test_backfill_holes.py::"
_ELSEWHERE = "unit/decide/place/test_avoid_failed_nodes.py::"
_GUARD = "if job.team == reserved.job.team and job.priority > reserved.job.priority:"
_ALIKE = 'return policy.name != "slurm" and not has_windows'

MUTANTS: dict[str, Mutant] = {
    "a preemption overrides a cancel": Mutant(
        "live/attempts/attempts.py",
        'if active.stop_reason != "cancelled":',
        "if True:",
        "unit/live/attempts/test_adoption.py::test_a_cancel_stands_over_any_other_reason_to_stop",
    ),
    "a job backfills before a gang that it could displace": Mutant(
        "decide/place/reserve/reservation_pass.py",
        _GUARD,
        "if False:",
        _HOLES + "test_a_job_that_could_displace_the_gang_may_not_use_what_is_kept_for_it",
    ),
    "a job of the gang's priority may not backfill": Mutant(
        "decide/place/reserve/reservation_pass.py",
        _GUARD,
        _GUARD.replace(">", ">="),
        _HOLES + "test_a_job_that_ends_before_the_promise_uses_its_node",
    ),
    "priorities of other teams count against backfill": Mutant(
        "decide/place/reserve/reservation_pass.py",
        _GUARD,
        "if job.priority > reserved.job.priority:",
        _HOLES + "test_a_priority_counts_within_its_team_alone",
    ),
    "slurm jobs leave their partition after a failure": Mutant(
        "compose/policies.py",
        _ALIKE,
        "return not has_windows",
        _ELSEWHERE + "test_under_slurm_a_job_stays_in_its_partition",
    ),
    "jobs move into windows after a failure": Mutant(
        "compose/policies.py",
        _ALIKE,
        'return policy.name != "slurm"',
        _ELSEWHERE + "test_a_job_is_not_moved_to_a_node_that_is_kept_by_a_window",
    ),
    "a GPU reads faster as the dataset grows": Mutant(
        "study/grow/layers/storage/read.py",
        "return draw.read_bytes_per_s * running(factor)",
        "return draw.read_bytes_per_s * running(factor) * factor",
        "unit/study/grow/test_axes.py::test_reads_and_saves_grow_with_the_nodes_along_all_axes",
    ),
    "any change of a part counts": Mutant(
        "decide/detect/regression.py",
        "FELT_MIN = 0.01",
        "FELT_MIN = 0.0",
        "unit/decide/detect/test_regression.py::test_a_part_is_slower_only_where_the_step_feels_one_hundredth",
    ),
    "a part counts at two hundredths of a step": Mutant(
        "decide/detect/regression.py",
        "FELT_MIN = 0.01",
        "FELT_MIN = 0.02",
        "unit/decide/detect/test_regression.py::test_a_part_is_slower_only_where_the_step_feels_one_hundredth",
    ),
    "grow misses a requirement that is met exactly": Mutant(
        "cli/grow/json.py",
        "first.k is not None and first.k < need",
        "first.k is not None and first.k <= need",
        "unit/study/grow/test_analyse.py::test_what_breaks_at_a_factor_is_ok_up_to_that_factor",
    ),
}


class _Mutated(importlib.machinery.SourceFileLoader):
    """A loader that compiles the mutant, past any byte code of the real file."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(mutant.path))
        self._source = mutant.source()

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        print(f"mutated {module.__name__}", file=sys.__stdout__)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        loader = _Mutated(self._mutant)
        return spec_from_file_location(fullname, self._mutant.path, loader=loader)


if chosen := os.environ.get(CHOSEN):
    assert MUTANTS[chosen].module not in sys.modules
    sys.meta_path.insert(0, _Finder(MUTANTS[chosen]))
