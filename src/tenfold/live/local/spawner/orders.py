"""Which starts the spawner refuses."""

from tenfold.clock.wall import now_ms
from tenfold.live.local.attempt.folder import NAME_BYTES_MOST, AttemptFolder, ExecutorDir, file_name
from tenfold.live.local.attempt.repair import is_planted
from tenfold.live.local.spawner.wire import LaunchLine, NoteLine


def refused(folder: AttemptFolder, code: str, sentence: str) -> NoteLine:
    """Return the note that an order was refused."""
    return {
        "saw": "refused",
        "at_ms": now_ms(),
        "job": folder.job,
        "attempt": folder.number,
        "reason": {"code": code, "sentence": sentence},
    }


def refusal_of_start(home: ExecutorDir, launch: LaunchLine) -> NoteLine | None:
    """Return why a new attempt must not start; None if it may."""
    job, attempt = launch["job"], launch["attempt"]
    folder = home.attempt(job, attempt)
    if max(len(file_name(job)), len(file_name(launch["team"]))) > NAME_BYTES_MOST:
        return refused(folder, "name-too-long", "the name of the job or team is too long")
    numbers = home.numbers(job)
    earlier = [number for number in numbers if not is_planted(home.attempt(job, number))]
    if earlier and earlier[-1] > attempt:
        sentence = f"attempt {attempt} of `{job}` is older than attempt {earlier[-1]} here"
        return refused(folder, "stale-order", sentence)
    if earlier:
        last = home.attempt(job, earlier[-1])
        # Neither end nor lock: some of its processes may still be alive.
        if last.is_locked() or last.end() is None:
            sentence = f"attempt {earlier[-1]} of `{job}` has not ended yet"
            return refused(folder, "earlier-attempt-lives", sentence)
    for member in launch["members"]:
        if home.is_lost(member["node"]):
            return refused(folder, "node-is-lost", f"node `{member['node']}` is lost")
    return None
