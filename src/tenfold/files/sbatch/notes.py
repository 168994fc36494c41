"""What is different about a batch script in a job, in the order of what matters most.

Commands that fail come first, then what runs otherwise than in Slurm, then options.
"""

import re
from collections.abc import Iterator, Sequence

from tenfold.files.sbatch.script import BatchScript

NOTES_MOST = 3
"""With more notes, those on ignored options are one note."""
_IGNORED = ": ignored: "
_HOME = re.compile(r"""(?:^|[\s=:"'(])~/|\$HOME\b|\$\{HOME\b""", re.MULTILINE)
_ANY_SRUN = re.compile(r"\bsrun\b")
_STEP = re.compile(r"\bsrun(?P<options>(?:\s+-\S+(?:\s+\d+(?=\s))?)+)")
"""`srun` with its options; one with another word as value ends them."""
_STEP_SIZE = re.compile(r"(?:^|\s)(?:-[nN]\s*=?|--(?:ntasks|nodes)(?:=|\s+))(\d{1,9})\b")
_READS = re.compile(r"(?:\$\(|`)\s*\Z")
"""Before a step whose output the script reads: it runs on each node."""
_FIXED_PORT = re.compile(
    r"""(?P<set>\bMASTER_PORT=["']?\d+)\b|--master[_-]port[=\s]\s*["']?\d+\b"""
    r"""|--rdzv[_-]endpoint[=\s]\s*["']?[^\s"']+:\d+\b"""
)
_SCONTROL = re.compile(r"\bscontrol\s+(?!show\s+hostnames?\b)(\w+(?:\s+\w+)?)")
_MODULE = re.compile(r"(?:^|[;&|])\s*(module|ml)\s+\S")
_SETS_UP = re.compile(r"(?:source|\.)\s+\S*(?:modul|lmod)", re.IGNORECASE)
_PROGRAMS = ("squeue", "scancel", "sinfo", "sbatch")


def ordered_notes(notes: Sequence[str]) -> list[str]:
    """Return each note once: those on the script, then on options; few on what is ignored."""
    found = list(dict.fromkeys(notes))
    ignored = [note for note in found if _IGNORED in note]
    others = [note for note in found if _IGNORED not in note]
    others.sort(key=lambda note: note.startswith("-"))
    if len(found) > NOTES_MOST and len(ignored) > 1:
        options = ", ".join(note.partition(_IGNORED)[0] for note in ignored)
        ignored = [f"ignored, with no effect on what runs: {options}"]
    return others + ignored


def step_notes(script: BatchScript, nodes: int, tasks: int) -> list[str]:
    """Return what is different about the commands and job steps of a script."""
    body = _body(script)
    notes = [*_missing_programs(script, body)]
    notes += _fixed_ports(script)
    if nodes > 1:
        notes.append(
            f"all of the script runs on each of the {nodes} nodes, in Slurm only on the first: what"
            f" it downloads, deletes or appends without srun, it does {nodes} times; start such a"
            " command with `srun -N1 -n1` to run it once"
        )
        notes += _partial_steps(script, nodes)
    if _ANY_SRUN.search(body):
        if "bash" not in " ".join(script.interpreter):
            missing = "`srun` is only there in bash scripts: begin the script with #!/bin/bash"
            notes.insert(0, missing)
        else:
            one = "once" if tasks == 1 else f"{tasks} times"
            notes.append(
                f"`srun` is a function here: without -N and -n it starts its command {one} on each"
                " node; there are no job steps"
            )
    return notes


def _fixed_ports(script: BatchScript) -> Iterator[str]:
    """Yield the first line that sets a fixed port for rendezvous: another job may have it too."""
    for number, line in enumerate(script.text.splitlines(), start=1):
        found = None if line.lstrip().startswith("#") else _FIXED_PORT.search(line)
        if found is not None:
            yield (
                f"line {number}: `{found[0].strip()}` is a fixed port: two jobs with the same port"
                " on one machine fail; each job has a free one in $MASTER_PORT, so "
                + ("remove the line" if found["set"] else "use that")
            )
            return


def _partial_steps(script: BatchScript, nodes: int) -> Iterator[str]:
    """Yield the first line whose `srun` starts fewer tasks or nodes than the job has nodes."""
    for number, line in enumerate(script.text.splitlines(), start=1):
        if line.lstrip().startswith("#"):
            continue
        for step in _STEP.finditer(line):
            if _READS.search(line[: step.start()]):
                continue
            counts = [int(size) for size in _STEP_SIZE.findall(step["options"])]
            if counts and 0 < min(counts) < nodes:
                where = "the first node" if min(counts) == 1 else f"the first {min(counts)} nodes"
                text = f"srun {step['options'].strip()}"
                yield (
                    f"line {number}: `{text}` runs on {where} only; on the others the script goes"
                    " on at once"
                )
                return


def home_notes(script: BatchScript) -> list[str]:
    """Return that the home folder of a job is not that of its submitter, if the script uses it."""
    if _HOME.search(_body(script)) is None:
        return []
    return ["`~` and `$HOME` are the folder of the team in a job; use yours with --export=HOME"]


def _missing_programs(script: BatchScript, body: str) -> Iterator[str]:
    """Yield the commands of a script that fail in a job."""
    if script.is_shell and not _has_modules(script, body):
        for number, line in enumerate(script.text.splitlines(), start=1):
            if match := _MODULE.search(line):
                yield (
                    f"line {number}: `{match[1]}` is not available in jobs: begin the script with "
                    "#!/bin/bash -l if login shells have it, or use a virtual environment"
                )
                break
    for found in dict.fromkeys(_SCONTROL.findall(body)):
        yield f"`scontrol {found}` does not work in a job: only `scontrol show hostnames` does"
    programs = [
        name for name in _PROGRAMS if re.search(rf"^\s*{name}\b|\$\({name}\b", body, re.MULTILINE)
    ]
    if programs:
        named = ", ".join(f"`{name}`" for name in programs)
        use = ", ".join(f"`tenfold {name}`" for name in programs)
        are = "is no program" if len(programs) == 1 else "are no programs"
        yield f"{named} {are} here: use {use}"


def _has_modules(script: BatchScript, body: str) -> bool:
    """Tell whether a script sets up `module` itself."""
    words = script.interpreter[1:]
    return "-l" in words or "--login" in words or _SETS_UP.search(body) is not None


def _body(script: BatchScript) -> str:
    return "\n".join(line for line in script.text.splitlines() if not line.startswith("#"))
