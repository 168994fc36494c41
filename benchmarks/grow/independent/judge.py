"""Put each made fleet to Tenfold, check what it says, and count right and wrong."""

import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from benchmarks.grow.independent.ask import Folder
from benchmarks.grow.independent.catalogue import KINDS as FLEETS
from benchmarks.grow.independent.made import KINDS

COMMAND = "python -m benchmarks.grow.independent"


@dataclass(frozen=True)
class Finding:
    """One check of one fleet; `wrong` is empty where it held."""

    fleet: str
    seed: int
    item: str
    layer: str
    kind: str
    check: str
    wrong: str
    cpu_s: float = 0.0


def judge_all(
    only: Sequence[str], seeds: Sequence[int], keep: Path | None, workers: int = 2
) -> list[Finding]:
    """Return what every check of every chosen fleet found, and print progress on stderr."""
    chosen = [
        (name, seed)
        for name, (_, count) in FLEETS.items()
        if not only or name in only
        for seed in (seeds or range(1, count + 1))
    ]
    findings: list[Finding] = []
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve()
        if workers == 1 or len(chosen) == 1:
            batches: Iterable[list[Finding]] = (
                judge_one(name, seed, path) for name, seed in chosen
            )
            findings = _collect(batches, len(chosen))
        else:
            with ProcessPoolExecutor(workers) as pool:
                waiting = [pool.submit(judge_one, name, seed, path) for name, seed in chosen]
                findings = _collect((one.result() for one in waiting), len(chosen))
    return findings


def judge_one(name: str, seed: int, folder: Path) -> list[Finding]:
    """Return the findings about one fleet."""
    began = time.process_time()
    made = FLEETS[name][0](seed)
    place = Folder(folder / f"{name}-{seed}", made)
    answer = place.ask()
    found: list[Finding] = []
    for check in made.checks:
        try:
            wrong = check.judge(answer)
        except (KeyError, TypeError, IndexError, StopIteration) as error:
            wrong = f"the answer lacks what is asked for: {error!r}"
        if wrong is not None:
            found.append(Finding(name, seed, made.item, made.layer, check.kind, check.name, wrong))
    spent = time.process_time() - began
    return [*found, Finding(name, seed, made.item, made.layer, "", "", "", spent)]


def _collect(batches: Iterable[list[Finding]], total: int) -> list[Finding]:
    findings: list[Finding] = []
    for done, batch in enumerate(batches, 1):
        wrong, last = sum(1 for one in batch if one.wrong), batch[-1]
        sys.stderr.write(
            f"{done}/{total} {last.fleet} seed {last.seed}: {wrong} wrong, {last.cpu_s:.1f} s\n"
        )
        findings += batch
    return findings


def table(findings: Sequence[Finding], by: str) -> list[str]:
    """Return right and all by layer or item, one column for each kind of check."""
    groups = sorted({getattr(one, by) for one in findings})
    lines = [f"{by:<20}" + "".join(f"{kind:>16}" for kind in KINDS)]
    for group in [*groups, "all"]:
        own = [one for one in findings if group in (getattr(one, by), "all")]
        cells = [_score([one for one in own if one.kind == kind]) for kind in KINDS]
        lines.append(f"{group:<20}" + "".join(f"{cell:>16}" for cell in cells))
    return lines


def _score(findings: Sequence[Finding]) -> str:
    right = sum(1 for one in findings if not one.wrong)
    return f"{right}/{len(findings)}" if findings else "-"


def share(findings: Sequence[Finding], kind: str) -> float:
    own = [one for one in findings if one.kind == kind]
    return sum(1 for one in own if not one.wrong) / len(own) if own else 0.0


def misses(findings: Sequence[Finding], keep: str = "DIR") -> list[str]:
    """Return each miss with the command that shows it again."""
    return [
        f"MISS {one.fleet} seed {one.seed} [{one.item}] {one.check}: {one.wrong}\n"
        f"     {COMMAND} --only {one.fleet} --seed {one.seed} --keep {keep}"
        for one in findings
        if one.wrong
    ]
