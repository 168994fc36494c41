"""Jobs that bear witness: every run says in one file when it begins and when it ends.

Lines are appended in one write each, so their order is the order in which things happened.
While a run lives, and whatever it forked, a lock is held that only one can hold: a second run
of the same job at the same time finds it taken and says so.
"""

import fcntl
import os
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

SCRIPT = r"""
run="$TENFOLD_JOB $TENFOLD_ATTEMPT $NODE_RANK"
exec 9>>"$WITNESS/locks/$TENFOLD_JOB.$NODE_RANK"
flock -n 9 || echo "twice $run $$" >>"$WITNESS/runs"
echo "begin $run $$" >>"$WITNESS/runs"
code=0
case $1 in
    true) ;;
    sleep) sleep "$2" ;;
    fail) code=3 ;;
    flee) setsid sleep 30 & ;;
    stubborn) trap '' TERM; sleep 15 ;;
    write) yes 'a line that somebody should have left out' | head -c 3000000 ;;
esac
echo "end $run $$" >>"$WITNESS/runs"
exit $code
"""
KINDS = {"true": 40, "sleep": 35, "fail": 5, "flee": 8, "stubborn": 4, "write": 8}
"""Of a hundred jobs, how many are of which kind."""
GANG_SHARE = 0.1
KILLED = "killed the controller"


class Witness:
    """The folder in which jobs bear witness."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        (folder / "locks").mkdir(parents=True)
        self.runs.touch()

    def job(self, dice: Random) -> dict[str, Any]:
        """Return a job of a kind that is drawn."""
        kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
        return {
            "name": kind,
            "command": ["sh", "-c", SCRIPT, kind, kind, f"{dice.uniform(0.05, 0.6):.2f}"],
            "env": {"WITNESS": str(self.folder)},
            "nodes": 2 if dice.random() < GANG_SHARE else 1,
            "gpus_per_node": 1,
            "cpus_per_node": 0,
            "grace": 0.5,
        }

    def note_kill(self) -> None:
        """Write down, in order with all else, that the controller is dead."""
        with self.runs.open("ab", buffering=0) as file:
            file.write(f"{KILLED}\n".encode())

    def held(self) -> int:
        """Return how many runs still hold their lock."""
        return sum(_is_held(path) for path in (self.folder / "locks").iterdir())


class Run(NamedTuple):
    """One process of one attempt, by the places of its lines."""

    job: str
    attempt: int
    rank: int
    began: int
    ended: int | None


class Told(NamedTuple):
    """What the file says."""

    runs: list[Run]
    twice: list[str]
    """Runs that found another one of the same job."""
    again: list[str]
    """Attempts that began more than once."""
    kills: list[int]
    """Places of the controller's deaths."""

    def adopted(self) -> list[Run]:
        """Return the runs that lived through a death of the controller to their own end."""
        return [
            run
            for run in self.runs
            if run.ended is not None and any(run.began < at < run.ended for at in self.kills)
        ]


def read(path: Path) -> Told:
    """Return what all runs said."""
    begun: dict[tuple[str, int, int], int] = {}
    ended: dict[tuple[str, int, int], int] = {}
    twice: list[str] = []
    again: list[str] = []
    kills: list[int] = []
    for place, line in enumerate(path.read_text().splitlines()):
        if line == KILLED:
            kills.append(place)
            continue
        word, job, attempt, rank, _ = line.split()
        key = (job, int(attempt), int(rank))
        if word == "twice":
            twice.append(line)
        elif word == "end":
            ended[key] = place
        elif key in begun:
            again.append(line)
        else:
            begun[key] = place
    runs = [Run(*key, began, ended.get(key)) for key, began in begun.items()]
    return Told(runs, twice, again, kills)


def _is_held(path: Path) -> bool:
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
