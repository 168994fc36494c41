"""What the folder of an attempt says, as states and observations; each phase is reported once."""

import os
from typing import cast

from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    AttemptState,
    EndKind,
    Member,
    MemberLog,
    Observation,
    Phase,
)
from tenfold.live.local.attempt import logs
from tenfold.live.local.attempt.folder import AttemptFolder
from tenfold.live.local.processes import boot
from tenfold.live.local.spawner.wire import EndLine, ReasonLine
from tenfold.model.ids import JobId, NodeId
from tenfold.model.reason import Reason, Text
from tenfold.model.units import Millis


class Reports:
    """Which phases of which attempts were reported."""

    def __init__(self) -> None:
        self._reported: dict[tuple[str, int], str] = {}

    def started(self, folder: AttemptFolder, at_ms: Millis) -> list[Observation]:
        """Report a start, unless it was reported."""
        if not self._is_first(folder, "started"):
            return []
        return [AttemptStarted(at_ms, JobId(folder.job), folder.number)]

    def ended(self, folder: AttemptFolder, end: EndLine) -> list[Observation]:
        """Report an end, and its start first if that was not reported."""
        started_ms = end["started_ms"]
        found = [] if started_ms is None else self.started(folder, Millis(started_ms))
        if self._is_first(folder, "ended"):
            found.append(end_observation(folder, end))
        return found

    def unreported(self, folder: AttemptFolder, end: EndLine | None) -> list[Observation]:
        """Report what a folder contains and was not reported yet."""
        if end is not None:
            return self.ended(folder, end)
        started = folder.record().get("started")
        return self.started(folder, Millis(started["at_ms"])) if started else []

    def returned(self, folder: AttemptFolder, state: AttemptState) -> None:
        """Do not report again what a returned state contains."""
        self._is_first(folder, "ended" if state.end else "started" if state.started_ms else "")

    def forget(self, job_id: JobId, attempt: int) -> None:
        """Forget an attempt that is settled."""
        self._reported.pop((job_id, attempt), None)

    def _is_first(self, folder: AttemptFolder, phase: str) -> bool:
        """Record that a phase was reported; False if it, or a later one, already was."""
        key = (folder.job, folder.number)
        reported = self._reported.get(key, "")
        if reported in (phase, "ended"):
            return False
        self._reported[key] = phase
        return True


def recorded_state(folder: AttemptFolder) -> AttemptState:
    """Return the state of an attempt as its folder has it, without asking anyone."""
    end = folder.end()
    observation = end_observation(folder, end) if end else None
    return state_with(folder, "starting", observation)


def state_with(
    folder: AttemptFolder, phase: Phase, end: AttemptEnded | AttemptLost | None
) -> AttemptState:
    """Return the state of an attempt with this end; `phase` if it has neither begun nor ended."""
    record = folder.record()
    launch, started = record.get("launch"), record.get("started")
    if end is not None:
        phase = "lost" if isinstance(end, AttemptLost) else "ended"
    elif started and phase == "starting":
        phase = "running"
    return AttemptState(
        job_id=JobId(folder.job),
        attempt=folder.number,
        phase=phase,
        members=tuple(
            Member(
                node=NodeId(member["node"]),
                gpus=tuple(member["gpus"]),
                cpus_milli=member["cpus_milli"],
                memory_mib=member["memory_mib"],
            )
            for member in (launch["members"] if launch else ())
        ),
        ordered_ms=Millis(launch["ordered_ms"] if launch else 0),
        started_ms=Millis(started["at_ms"]) if started else None,
        end=end,
    )


def end_observation(folder: AttemptFolder, end: EndLine) -> AttemptEnded | AttemptLost:
    """Return an end file as an observation."""
    reason = reason_of(end["reason"]) if end["reason"] else None
    if reason is not None and reason.code == "supervisor-told" and _machine_restarted(folder):
        reason = Reason("machine-restarted")
    at_ms, last_alive_ms = Millis(end["at_ms"]), end.get("died_ms")
    if end["how"] == "lost":
        assert reason is not None, "a lost attempt says why"
        return AttemptLost(at_ms, JobId(folder.job), folder.number, reason)
    return AttemptEnded(
        at_ms=at_ms,
        job_id=JobId(folder.job),
        attempt=folder.number,
        how=cast(EndKind, end["how"]),
        exit_code=end["exit_code"],
        signal=end["signal"],
        member=end["member"],
        reason=reason,
        log_bytes_dropped=end["log_bytes_dropped"],
        last_alive_ms=None if last_alive_ms is None else Millis(last_alive_ms),
    )


def reason_of(line: ReasonLine) -> Reason:
    """Return a reason that another process wrote."""
    return Reason(line["code"], {"said": Text(line["sentence"])})


def member_log(folder: AttemptFolder, member: int, bytes_most: int) -> MemberLog:
    """Return the tail of a member's log; empty if it wrote nothing."""
    paths = logs.segments(folder.path, member)
    return MemberLog(
        tail=logs.tail(paths, bytes_most),
        paths=tuple(paths),
        bytes_kept=sum(os.path.getsize(path) for path in paths if os.path.exists(path)),
        segments=tuple(logs.segment_offsets(folder.path, member)),
    )


def _machine_restarted(folder: AttemptFolder) -> bool:
    """Return whether an attempt ran before this machine last started."""
    return folder.record().get("boot") not in (None, boot())
