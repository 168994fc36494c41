"""The state directory of a control plane on this machine; only its owner can enter it.

STATE_DIR/journal.db     everything that happened
STATE_DIR/journal.head   the last event of the journal and its digest
STATE_DIR/run/           the spawner, attempts and their logs, and the folders of teams
STATE_DIR/logs/          the server log
STATE_DIR/history/       bundles of events older than the journal keeps
STATE_DIR/shadow.jsonl   what a shadow policy would have done
STATE_DIR/address.json   the address of the control plane that leads, while it runs
STATE_DIR/id             a random id: control planes that share a journal know each other by it

Control planes that share a journal also share this directory. One with a name has its lock, log and
shadow log in STATE_DIR/control-planes/NAME/.
"""

import logging
import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import cast

import msgspec

from tenfold.checkpoint.last_saved import last_saved_ms
from tenfold.client.endpoint import ADDRESS, Address, lock_holder, own_folder, read_address
from tenfold.files.records.shadow_log import NAME as SHADOW_LOG
from tenfold.journal.integrity.head_file import SUFFIX, read_head
from tenfold.journal.leadership.lease import LeaseState
from tenfold.live.attempts.active import CheckpointTime
from tenfold.live.executor import LOG_TAIL_BYTES, MemberLog
from tenfold.live.local.attempt import logs
from tenfold.live.local.attempt.environment import inherited
from tenfold.live.local.attempt.folder import (
    AttemptFolder,
    ExecutorDir,
    plain_name,
    private_folder,
)
from tenfold.live.local.attempt.open_folder import open_folder, opened
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.member.team_users import TeamUsers
from tenfold.live.local.member.user import first_blocked, reading_as
from tenfold.live.local.spawner.wire import LaunchLine
from tenfold.live.sites.folders import all_homes
from tenfold.model.errors import InputError
from tenfold.model.events import JobSubmitted
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.units import Millis
from tenfold.server.programs import ProgramCheck, UnusableProgram
from tenfold.server.workdirs import ClosedFolder, FolderCheck

ID = "id"
_LOG = logging.getLogger("tenfold.server")
NODES = "nodes.json"
"""The nodes of the last start, which is written after the journal."""
_NUMBER = re.compile(r"-(\d{1,15})(?:\[(\d{1,15})\])?\Z")
"""The number in a job's id, and the index of an array member, which counts up from it."""


class StateDir:
    """The files of one control plane."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path.absolute()
        self.name = name
        own = own_folder(self.path, name)
        self.journal = self.path / "journal.db"
        self.run = self.path / "run"
        self.log = own / "logs" / "server.jsonl"
        self.address = self.path / ADDRESS
        self.shadow = own / SHADOW_LOG
        self.history = self.path / "history"

    def prepare(self) -> None:
        """Create the folders, closed to other users except for the path of team users."""
        private_folder(str(self.log.parent))
        way = ExecutorDir(str(self.run)).parent_mode()
        for folder in (self.path, self.run):
            private_folder(str(folder), way)

    def identity(self) -> str:
        """Return the random id of this directory, which never changes."""
        path = self.path / ID
        with suppress(FileNotFoundError):
            return path.read_text().strip()
        half = path.with_name(f".{ID}.{os.getpid()}")
        half.write_text(f"{token_hex(8)}\n")
        with suppress(FileExistsError):
            # Only one of two that start at once makes it.
            os.link(half, path)
        half.unlink()
        return path.read_text().strip()

    def is_dead(self, lease: LeaseState) -> bool:
        """Tell whether the leader ran in this directory and its process is gone."""
        identity, slash, name = lease.control_plane.partition("/")
        if not slash or identity != self.identity() or name == self.name:
            return False
        return lock_holder(own_folder(self.path, name)) is None

    def check_journal(self, journal: str = "") -> None:
        """Raise if the journal is empty or missing, but other files show that it was not.

        `journal` is another file or URL of the journal. Without such files it is a first start.
        """
        if "://" in journal:
            return
        file = Path(journal) if journal else self.journal
        is_empty = file.exists()
        if is_empty and file.stat().st_size:
            return
        head = file.with_suffix(SUFFIX)
        used = [head] if _had_events(head) else []
        if is_empty:
            homes = [Path(one) for one in all_homes(str(self.run))]
            folders = (*(one / "attempts" for one in homes), self.history)
            used += [self.path / NODES] + [one for folder in folders for one in folder.glob("*")]
        found = next((one for one in used if one.exists()), None)
        if found is not None:
            raise InputError(
                "journal-emptied",
                f"the journal `{file}` is {'empty' if is_empty else 'missing'}, but "
                f"`{found}` shows that it was in use",
                "restore a backup; to begin a new journal, use another state directory "
                "(--state-dir)",
                file=str(file),
            )

    def note_nodes(self, names: Sequence[str]) -> None:
        """Add nodes to the list of this start, so that the next start must declare them, too."""
        path = self.path / NODES
        try:
            before = msgspec.json.decode(path.read_bytes(), type=list[str])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            before = []
        half = path.with_name(f".{NODES}")
        half.write_bytes(msgspec.json.encode(list(dict.fromkeys([*before, *names]))))
        half.replace(path)

    def last_number(self) -> int:
        """Return the largest job number that left files here.

        After a journal was restored from a backup, it may be larger than the journal knows. A job
        with that number again would run into the folder of another job.
        """
        homes = [Path(one) for one in all_homes(str(self.run))]
        names = [plain_name(path.name) for home in homes for path in home.glob("attempts/*")]
        found = [_NUMBER.search(name) for name in names]
        return max((int(one[1]) + int(one[2] or 0) for one in found if one is not None), default=0)

    def write_address(self, address: Address) -> None:
        """Write the address file, readable by its owner only."""
        half = self.address.with_name(f".{ADDRESS}")
        half.unlink(missing_ok=True)
        file = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as writing:
            writing.write(msgspec.json.encode(address))
        half.replace(self.address)

    def remove_address(self) -> None:
        """Remove the address file, as nothing answers there any more."""
        address = read_address(self.path)
        if address is None or address.pid in (0, os.getpid()):
            self.address.unlink(missing_ok=True)


WAY_OUT = (
    "submit from a directory that this user can write to, or start `tenfold up --team-users off` "
    "if only you use this machine"
)
"""What to do where the user of a team has no access to the files of the submitter."""


def _had_events(head: Path) -> bool:
    with suppress(OSError):
        found = read_head(head)
        return found is None or found.seq > 0
    return False


class LocalLogs:
    """Reads the logs of the local executor without being its client; thread-safe."""

    def __init__(self, run: Path) -> None:
        self._run = str(run)

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the end of a member's log; empty if it wrote nothing."""
        attempt_folder = self._attempt(job_id, attempt)
        folder, end = attempt_folder.path, attempt_folder.end()
        paths = logs.segments(folder, member)
        kept = 0
        for path in paths:
            # A segment may be rotated at this moment.
            with suppress(FileNotFoundError):
                kept += os.path.getsize(path)
        return MemberLog(
            tail=logs.tail(paths, bytes_most),
            paths=tuple(paths),
            bytes_kept=kept,
            segments=(segments := tuple(logs.segment_offsets(folder, member))),
            is_removed=not os.path.isdir(folder),
            bytes_dropped=segments[0][0] if segments else 0,
            bytes_dropped_in_all=0 if end is None else end["log_bytes_dropped"],
            failed_member=None if end is None else end["member"],
        )

    def _attempt(self, job_id: JobId, attempt: int) -> AttemptFolder:
        """Return the folder of an attempt, at whichever site it ran."""
        found = [ExecutorDir(one).attempt(job_id, attempt) for one in all_homes(self._run)]
        return next((one for one in found if os.path.isdir(one.path)), found[0])


def saved_in(run: Path, users: TeamUsers | None = None) -> CheckpointTime:
    """Return a function that tells when a job last saved a valid checkpoint.

    The folder is opened once, and read with the rights of the job's team.
    """
    home = ExecutorDir(str(run))

    def saved_at(job: Job, run_spec: RunSpec) -> Millis | None:
        if run_spec.checkpoint is None:
            return None
        line = {
            "job": job.id,
            "team": job.team,
            "folder": run_spec.folder,
            "saves_folder": run_spec.checkpoint.folder,
        }
        user = None if users is None else users.known(job.team)
        if users is not None and user is None:
            return None
        try:
            path = JobFolders(home, cast("LaunchLine", line)).checkpoints
            with reading_as(user), opened(path) as folder:
                found = last_saved_ms(folder)
        except OSError:
            return None
        except Exception:
            # The job names the folder and writes what is in it; the loop must not fail on either.
            _LOG.exception("the checkpoints of job `%s` cannot be read", job.id)
            return None
        return None if found is None else Millis(found)

    return saved_at


def workdir_in(run: Path) -> Callable[[JobSubmitted], str]:
    """Return a function that tells in which folder a job runs."""
    home = ExecutorDir(str(run))

    def workdir(submission: JobSubmitted) -> str:
        job, run_spec = submission.job, submission.run_spec
        if run_spec is None:
            return ""
        line = {"job": job.id, "team": job.team, "folder": run_spec.folder, "saves_folder": ""}
        line |= {"submit_folder": "" if run_spec.folder else run_spec.submit_folder}
        return JobFolders(home, cast("LaunchLine", line)).workdir

    return workdir


def check_folders(users: TeamUsers | None) -> FolderCheck:
    """Return a function that tells why a team's jobs cannot enter a folder.

    With team users the folder is opened with the rights of that user, in this thread only.
    """

    def check(team: TeamId, folder: str) -> ClosedFolder | None:
        user = None if users is None else users.stand_in(team)
        if users is not None and user is None:
            return None
        whose = "jobs" if user is None else f"jobs of team `{team}` (uid {user['uid']})"
        try:
            with reading_as(user):
                os.close(open_folder(folder))
                can_write = user is None or os.access(folder, os.W_OK, effective_ids=True)
        except (FileNotFoundError, NotADirectoryError):
            return ClosedFolder("missing", f"`{folder}` is not a folder on this machine")
        except OSError as error:
            why = (error.strerror or "").lower()
            way_out = "" if user is None else f"; {WAY_OUT}"
            return ClosedFolder("closed", f"{whose} cannot enter `{folder}`: {why}{way_out}")
        if not can_write:
            return ClosedFolder("read-only", f"{whose} cannot write to `{folder}`; {WAY_OUT}")
        return None

    return check


def program_check(users: TeamUsers | None) -> ProgramCheck:
    """Return a function that tells why a team's jobs cannot run a program of this machine.

    With team users, links are followed and the interpreter of a script is checked too: a program
    may be in a folder of the submitter that the user of the team cannot enter.
    """

    def check(team: TeamId, program: str, path: str | None, folder: str) -> UnusableProgram | None:
        user = None if users is None else users.stand_in(team)
        if users is not None and user is None:
            return None
        search = inherited(os.environ)["PATH"] if path is None else path
        named = os.path.join(folder, program) if folder and "/" in program else program
        if "/" in named and not named.startswith("/"):
            # Relative to a folder that does not exist yet.
            return None
        file = shutil.which(named, path=search)
        if file is None:
            return _missing_program(program, named)
        blocked = ""
        if user is not None:
            with reading_as(user):
                blocked = first_blocked(file)
        if not blocked:
            return None
        assert user is not None, "only the user of a team is checked"
        whose = f"jobs of team `{team}` (uid {user['uid']})"
        sentence = f"{whose} cannot run `{program}`: they cannot enter `{blocked}`"
        if not os.path.isdir(blocked):
            sentence = f"{whose} cannot run `{program}`: they may not execute `{blocked}`"
        ways = f"use `chmod o+x {blocked}`, or a program outside it, or"
        hint = f"{ways} `tenfold up --team-users off` if only you use this machine"
        return UnusableProgram("closed", sentence, hint)

    return check


def _missing_program(program: str, named: str) -> UnusableProgram:
    if os.path.isfile(named):
        sentence = f"`{program}` is not executable"
        return UnusableProgram(
            "missing", sentence, f"use `chmod +x`, or name what runs it: `bash {program}`"
        )
    where = "does not exist" if "/" in named else "is not in PATH"
    hint = "check the name; shell builtins and pipes need a shell: `sh -c '...'`"
    return UnusableProgram("missing", f"command not found: `{program}` {where}", hint)
