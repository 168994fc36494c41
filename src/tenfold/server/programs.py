"""Refuse commands whose program the job cannot run, where the control plane can know that.

It can if the job was submitted on its own machine and runs without a container image. A job that
waits for others is not checked: they may install the program first.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import TeamId
from tenfold.model.job.submission import Submission
from tenfold.server.problems import validation_problem
from tenfold.server.submissions import SubmissionRequest


class UnusableProgram(NamedTuple):
    """Why the jobs of a team cannot run a program."""

    kind: Literal["missing", "closed"]
    sentence: str
    hint: str


ProgramCheck = Callable[[TeamId, str, str | None, str], UnusableProgram | None]
"""Tells why a team cannot run a program, by its name, the job's PATH and its working directory."""


def any_program(team: TeamId, program: str, path: str | None, folder: str) -> None:
    """Let every team run every program: for servers whose jobs run elsewhere."""


def check_programs(request: SubmissionRequest, machine: str, check: ProgramCheck) -> None:
    """Raise if a job of a request cannot run its program."""
    findings: list[Finding] = []
    known: dict[tuple[TeamId, str, str | None, str], UnusableProgram | None] = {}
    for place, one in enumerate(request.submissions):
        if not _is_checked(one, machine):
            continue
        spec = one.run_spec
        key = (one.team, spec.command[0], dict(spec.env).get("PATH"), _folder(one))
        if key not in known:
            known[key] = check(*key)
        if (found := known[key]) is not None:
            path: Sequence[str | int] = ("command",)
            path = ("jobs", place, *path) if request.is_batch else path
            code = "no-such-program" if found.kind == "missing" else "program-closed"
            findings.append(
                Finding(code=code, message=found.sentence, hint=found.hint, path=tuple(path))
            )
    if findings:
        raise validation_problem(findings, "the submission")


def needs_programs(request: SubmissionRequest, machine: str) -> bool:
    """Tell whether the program of any job of a request is looked at."""
    return any(_is_checked(one, machine) for one in request.submissions)


def _is_checked(one: Submission, machine: str) -> bool:
    origin, terms = one.run_spec.origin, one.terms
    waits = terms is not None and bool(terms.after or terms.ended_first)
    is_here = origin is not None and bool(machine) and origin.machine == machine
    return is_here and not one.run_spec.image and not waits


def _folder(one: Submission) -> str:
    return one.run_spec.folder or one.run_spec.submit_folder
