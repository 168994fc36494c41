"""Choose the working directory of jobs at submission, and refuse folders that are closed to them.

The folder that the submitter was in is used if the control plane runs on the same machine and the
job's user may enter it. Otherwise the job gets a folder of its own, and a note says why. A
`workdir` of the job file that the job's user cannot enter is refused.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from msgspec.structs import replace

from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import TeamId
from tenfold.model.job.origin import Origin
from tenfold.model.job.submission import Submission
from tenfold.server.problems import validation_problem
from tenfold.server.submissions import SubmissionRequest, sized

OWN_FOLDER = "the job runs in its own directory"
HINT = "let that user enter the folder (`chmod o+x`), or leave out `workdir`"
MISSING_HINT = "create the folder first, or leave out `workdir`"


class ClosedFolder(NamedTuple):
    """Why the jobs of a team cannot use a folder."""

    kind: Literal["missing", "closed", "read-only"]
    sentence: str


FolderCheck = Callable[[TeamId, str], ClosedFolder | None]
"""Tells why a team's jobs cannot enter a folder on this machine; None if they can."""


def any_folder(team: TeamId, folder: str) -> None:
    """Let every team's jobs enter every folder: for servers whose jobs run elsewhere."""


def needs_workdirs(request: SubmissionRequest) -> bool:
    """Tell whether a folder of any job of a request must be looked at."""
    return any(_absolute(one) or _origin(one).folder for one in request.submissions)


def with_workdirs(
    request: SubmissionRequest, machine: str, check: FolderCheck
) -> SubmissionRequest:
    """Return a request with the working directories of its jobs; raise if one is closed."""
    findings: list[Finding] = []
    made: list[Submission] = []
    notes: dict[int, str] = {}
    known: dict[tuple[TeamId, str], ClosedFolder | None] = {}

    def closed(team: TeamId, folder: str) -> ClosedFolder | None:
        if (team, folder) not in known:
            known[team, folder] = check(team, folder)
        return known[team, folder]

    for place, one in enumerate(request.submissions):
        if workdir := _absolute(one):
            found = closed(one.team, workdir)
            if found is not None and found.kind == "read-only":
                notes[place] = found.sentence
            elif found is not None and (found.kind == "closed" or _must_exist(one, machine)):
                path = ("jobs", place, "workdir") if request.is_batch else ("workdir",)
                findings.append(_unusable(found, path))
            made.append(one)
            continue
        placed, note = _in_submit_folder(one, machine, closed)
        made.append(placed)
        if note:
            notes[place] = note
    if findings:
        raise validation_problem(findings, "the submission")
    return replace(request, submissions=sized(made), workdir_notes=notes)


def _in_submit_folder(one: Submission, machine: str, closed: FolderCheck) -> tuple[Submission, str]:
    """Return a job that runs where it was submitted, if it can; and a note."""
    folder = _origin(one).folder
    if one.run_spec.folder or not folder:
        return one, ""
    if _origin(one).machine != machine:
        return one, f"{OWN_FOLDER}: you submitted it from another machine"
    found = closed(one.team, folder)
    if found is not None and found.kind != "read-only":
        return one, f"{OWN_FOLDER}: {found.sentence}"
    there = replace(one, run_spec=replace(one.run_spec, submit_folder=folder))
    return there, "" if found is None else found.sentence


def _must_exist(one: Submission, machine: str) -> bool:
    """Tell whether a folder must exist at submission: not if another job may create it first."""
    has_earlier = one.terms is not None and bool(one.terms.after)
    return _origin(one).machine == machine and not one.run_spec.image and not has_earlier


def _unusable(found: ClosedFolder, path: tuple[str | int, ...]) -> Finding:
    message = f"`workdir` cannot be used: {found.sentence}"
    if found.kind == "missing":
        return Finding(code="workdir-missing", message=message, hint=MISSING_HINT, path=path)
    return Finding(code="workdir-closed", message=message, hint=HINT, path=path)


def _absolute(one: Submission) -> str:
    """Return the folder that a job names by an absolute path; others are in its team's folder."""
    folder = one.run_spec.folder
    return folder if folder.startswith("/") else ""


def _origin(one: Submission) -> Origin:
    return one.run_spec.origin or Origin()
