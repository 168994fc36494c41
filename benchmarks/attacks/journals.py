"""A journal with a flipped bit, without its end, or without a byte."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.attacks.target import API, Finding, Target, Tree, wait

MARK = "marker-of-job"
READY_S = 8.0
JOBS = 4


def damaged(tree: Tree) -> Iterator[Finding]:
    """Damage is found by `journal verify`, and no control plane works on as if there were none."""
    kinds: dict[str, tuple[Callable[[Target], None], str]] = {
        "a bit flipped in a stored command": (_flip, "journal-damaged"),
        "the journal of a moment before, beside newer files": (_cut, "journal-cut"),
        "a journal of 0 bytes": (_empty, "journal-emptied"),
    }
    for kind, (damage, code) in kinds.items():
        with Target(tree) as target:
            for number in range(JOBS):
                made = target.submit({"command": ["true", f"{MARK}-{number}"]})
                target.end_of(made.json()["id"])
                if number == JOBS - 2:
                    target.stop()
                    shutil.copy(target.state / "journal.db", target.root / "older.db")
                    target.start()
            target.stop()
            damage(target)
            verified = _verified(tree, target.state)
            started = target.start()
            if started:
                wait(lambda: target.readyz().status == 200, READY_S)
            came = f"verify {verified}; {_after(target) if started else 'refuses to start'}"
            held = code in verified and (not started or target.readyz().status != 200)
            yield Finding(kind, came, held, f"verify says {code}; not ready, or does not start")


def _after(target: Target) -> str:
    """Return what a control plane shows that did start."""
    listed = "no list"
    with suppress(OSError, ValueError, KeyError), target.wire() as red:
        listed = f"{len(red.get(f'{API}/jobs').json()['jobs'])} of {JOBS} jobs"
    return f"starts, readyz {target.readyz().status}, {listed}"


def _flip(target: Target) -> None:
    old, new = f"{MARK}-1", f"{MARK[:-1]}{chr(ord(MARK[-1]) ^ 1)}-1"
    target.sql(f"UPDATE events SET body = replace(body, '{old}', '{new}')")


def _cut(target: Target) -> None:
    shutil.copy(target.root / "older.db", target.state / "journal.db")
    _forget_log(target)


def _empty(target: Target) -> None:
    (target.state / "journal.db").write_bytes(b"")
    _forget_log(target)


def _forget_log(target: Target) -> None:
    for end in ("-wal", "-shm"):
        (target.state / f"journal.db{end}").unlink(missing_ok=True)


def _verified(tree: Tree, state: Path) -> str:
    """Return the exit status of `journal verify`, and the code of what it found."""
    # Copied: it must not put right what the start is to meet.
    copy = state.parent / "copy"
    shutil.copytree(state, copy, ignore=shutil.ignore_patterns("run", "*.sock"))
    done = tree.run("journal", "verify", "--home", str(copy), "--json")
    shutil.rmtree(copy)
    codes: list[str] = []
    for text in (done.stdout, done.stderr):
        with suppress(ValueError):
            told = json.loads(text)
            codes += [one["code"] for one in told.get("findings", ())]
            codes += [told["error"]["code"]] if "error" in told else []
    return f"exits {done.returncode} {' '.join(dict.fromkeys(codes)) or 'no errors'}"
