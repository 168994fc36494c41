"""Characters that act on a terminal, in what a team submits, in logs and in files of others."""

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.attacks.target import Finding, Target, Tree

EVIL = "a\x1b]0;owned\x07b\x1b[2Jc\u202ed"
REVERSED = "a\u202ed\u2066"
RAW = {
    "ESC": ("\x1b]0;owned", "\x1b[2J"),
    "BEL": ("b\x07", "owned\x07"),
    "U+202E": ("\u202e",),
}
"""Parts of the text by the character that acts; a terminal of ours has no others like them."""
PLANTS = """
import sys
from tenfold.clock.wall import now_ms
from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store
from tenfold.model.events import JobSubmitted
from tenfold.model.ids import TeamId
from tenfold.model.job.job import shape_of
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission, admitted
from tenfold.model.units import Millis

evil, at_ms = sys.argv[2], Millis(now_ms())
spec = RunSpec(name="planted", command=("true", evil), folder=evil, env=(("A", evil),))
asked = Submission(team=TeamId("red"), user=evil, shape=shape_of(), run_spec=spec)
[made] = admitted(asked, 900, at_ms)
store = open_store(sys.argv[1])
open_journal(store, "planted", at_ms).append([JobSubmitted(at_ms, made.job, made.run_spec)])
store.close()
print(made.job.id)
"""
"""Puts a job into a stopped control plane's journal, as a version took it that checked less."""


def terminals(tree: Tree) -> Iterator[Finding]:
    """What is shown to an operator acts on no terminal."""
    with Target(tree) as target:
        told = {
            "command": target.submit({"command": ["true", EVIL]}),
            "workdir": target.submit({"command": ["true"], "workdir": f"/nowhere/{EVIL}"}),
            "env": target.submit({"command": ["true"], "env": {"A": EVIL}}),
        }
        prints = ["python3", "-c", f"print({EVIL!a})"]
        logged = target.submit({"command": prints}).json()["id"]
        shown = {name: one.json()["id"] for name, one in told.items() if one.status == 201}
        for job_id in (logged, *shown.values()):
            target.end_of(job_id)
        commands = {"job list": ["job", "list"], "job logs": ["job", "logs", logged]}
        commands |= {f"job show ({name})": ["job", "show", one] for name, one in shown.items()}
        answered = ", ".join(f"{name} {one.status}" for name, one in told.items())
        yield _shown(target, f"submitted ({answered})", commands)
        target.kill()
        done = subprocess.run(
            [sys.executable, "-c", PLANTS, str(target.state / "journal.db"), EVIL],
            env=tree.environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        planted = done.stdout.strip()
        target.start()
        target.end_of(planted)
        commands = {"job list": ["job", "list"], "job show": ["job", "show", planted]}
        yield _shown(target, "planted in the journal", commands)
    yield _report(tree)


def _shown(target: Target, where: str, commands: dict[str, list[str]]) -> Finding:
    met = {
        name: _acting(target.on_a_terminal(*words).decode(errors="replace"))
        for name, words in commands.items()
    }
    return Finding(
        f"ESC, BEL and U+202E {where}",
        "; ".join(f"{name} prints {', '.join(one) or 'none'}" for name, one in met.items()),
        not any(met.values()),
        "none is printed",
    )


def _report(tree: Tree) -> Finding:
    """A report about a fleet and a trace of somebody else."""
    with Target(tree) as target:
        fleet, jobs, page = (target.root / name for name in ("f.toml", "jobs.csv", "page.html"))
        pool = f'name = {json.dumps(REVERSED)}\naccelerator = "H100"\nnodes = 4\ngpus_per_node = 8'
        fleet.write_text(f"[[pool]]\n{pool}\n")
        rows = ["job_id,team,user,submit_s,duration_s,gpus", f"{REVERSED},{REVERSED},u,0,600,8"]
        jobs.write_text("\n".join(rows) + "\n")
        words = ["--fleet", str(fleet), "--jobs", str(jobs), "--html", str(page)]
        done = tree.run("sim", "run", *words)
        text = page.read_text() if page.exists() else ""
        raw = [f"U+{ord(one):04X}" for one in "\u202e\u2066" if one in text + done.stdout]
        return Finding(
            "U+202E and U+2066 in names of a pool, a team and a job, in an HTML report",
            f"exit {done.returncode}, {len(text):,} characters, has {', '.join(raw) or 'none'}",
            not raw and done.returncode in (0, 2),
            "none is in it",
        )


def _acting(text: str) -> list[str]:
    return [name for name, parts in RAW.items() if any(part in text for part in parts)]
