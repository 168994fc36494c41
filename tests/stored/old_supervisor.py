"""Stand in for a supervisor of commit 70aabbe that outlived its control plane.

    python old_supervisor.py ATTEMPT_FOLDER TEAM_FOLDER

It holds the lock of its record, runs the members that the record names, obeys `stop.json`, and
writes `end.json`, in the very bytes of that commit. It imports nothing of Tenfold: whatever Tenfold
becomes, this is what may be running when it is upgraded.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main(folder: Path, team: str) -> None:
    lock = os.open(folder / "record", os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    text = (folder / "record").read_text()
    launch = json.loads(text.partition("\n")[0])["launch"]
    told: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: told.append(number))
    os.setsid()
    members = [_member(launch, rank, folder, team) for rank in range(len(launch["members"]))]
    pids = json.dumps([member.pid for member in members])
    text = text.replace("@SUPERVISOR@", str(os.getpid())).replace("@PIDS@", pids)
    os.ftruncate(lock, 0)
    os.write(lock, text.encode())
    print("ready", flush=True)
    stop = None
    while any(member.poll() is None for member in members):
        # A new spawner has every supervisor look, whether there is a stop or not.
        if told and stop is None and (folder / "stop.json").exists():
            stop = json.loads((folder / "stop.json").read_text())
            assert list(stop) == ["grace_ms", "cause", "sentence"], stop
            for member in members:
                os.killpg(member.pid, signal.SIGTERM)
        time.sleep(0.02)
    _end(folder, json.loads(text.splitlines()[2])["started"]["at_ms"], stop, members)


def _member(launch: dict[str, Any], rank: int, folder: Path, team: str) -> subprocess.Popen[bytes]:
    environment = {
        **launch["inherited"],
        **dict(launch["env"]),
        "HOME": team,
        "TENFOLD_JOB": launch["job"],
        "TENFOLD_HEARTBEAT": f"{folder}/{rank}.beat",
    }
    with (folder / f"{rank}.log").open("wb") as log:
        return subprocess.Popen(
            launch["command"],
            env=environment,
            cwd=f"{team}/{launch['job']}",
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _end(
    folder: Path,
    started_ms: int,
    stop: dict[str, Any] | None,
    members: list[subprocess.Popen[bytes]],
) -> None:
    codes = [member.returncode for member in members]
    failed = [(rank, code) for rank, code in enumerate(codes) if code]
    member, code = failed[0] if failed else (None, 0)
    end = {
        "at_ms": time.time_ns() // 1_000_000,
        "started_ms": started_ms,
        "how": "exited" if stop is None else "stopped",
        "exit_code": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
        "member": member,
        "reason": None if stop is None else {"code": stop["cause"], "sentence": stop["sentence"]},
        "log_bytes_dropped": 0,
    }
    staging = folder / ".end.json"
    staging.write_text(json.dumps(end))
    staging.rename(folder / "end.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
