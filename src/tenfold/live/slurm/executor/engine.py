"""Slurm as an engine: its own commands, a bounded number of them for all attempts together.

Each attempt is one `sbatch` on the nodes that Tenfold chose. Its comment names the attempt, so it
is found again even if the controller died before it noted the Slurm job id; its batch script runs
only if it can claim the attempt, so a second submission of the same attempt ends at once.
"""

import math
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from msgspec import Struct

from tenfold.files.slurm.settings import PartitionState, read_partitions
from tenfold.live.executor import Launch
from tenfold.live.external.engine import EngineRefusal, Listing, Mark, Submission, Target
from tenfold.live.external.script import CLAIM, NAME, OWNER, TAKEN, Engagement, member_script
from tenfold.live.local.attempt.folder import ExecutorDir, private_folder, write_durably
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.spawner.wire import LaunchLine
from tenfold.live.slurm.commands import CommandFailed, SlurmCommands
from tenfold.live.slurm.executor.listing import JOBS, NODES, comment_of, read_jobs, read_nodes
from tenfold.model.errors import Unreachable
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason, Text

PASSED = ("PATH", "LANG", "TZ", "HOME", "USER", "LOGNAME", "SHELL", "SLURM_CONF")
ID_FILE = "slurm-id"
BATCH_OUTPUT = "job.out"
SUBMIT_TIMEOUT_S = 30.0
LIMIT_SLACK_S = 120.0
"""Tenfold ends a job at its time limit; Slurm's limit lies so much after that and its grace."""
PARTITIONS_S = 300.0
"""The time limits of partitions are read this often."""
PARTITIONS = ("scontrol", "--all", "show", "partitions", "--oneliner")
IMAGE_RUNTIMES = ("apptainer", "singularity")
BUSY = ("contact", "timed out", "temporarily", "try again", "connection", "communication")
"""In messages of `sbatch` after which the same order can succeed later."""
_END_GANG = """\
  scancel --quiet --signal=TERM "$SLURM_JOB_ID"
  waited=0
  while [ "$waited" -lt @TENTHS@ ]; do
    missing=
    for one in @RANKS@; do [ -e "$attempt/$one.exit" ] || missing=1; done
    [ "$missing" ] || return
    sleep 0.2
    waited=$((waited + 2))
  done
  scancel --quiet --signal=KILL "$SLURM_JOB_ID.$SLURM_STEP_ID"\
"""


class SlurmOptions(Struct, frozen=True, kw_only=True):
    """How attempts are submitted."""

    partition: str = ""
    account: str = ""
    qos: str = ""


DEFAULTS = SlurmOptions()


class SlurmEngine:
    """One Slurm cluster, through its commands."""

    name = "Slurm"

    def __init__(
        self,
        home: str,
        *,
        environment: Mapping[str, str] | None = None,
        options: SlurmOptions = DEFAULTS,
    ) -> None:
        """`environment` selects the cluster, through `SLURM_CONF`.

        Slurm passes the environment of `sbatch` to the job, so the commands get little of it.
        """
        own = os.environ if environment is None else environment
        self._commands = SlurmCommands({name: own[name] for name in PASSED if name in own})
        self._home = ExecutorDir(home)
        self._options = options
        self._home_id = _home_id(home)
        self._addresses: dict[str, str] = {}
        self._began_s = time.monotonic()
        found = [one for one in IMAGE_RUNTIMES if shutil.which(one, path=own.get("PATH"))]
        self._image_runtime = found[0] if found else ""
        self._has_pyxis: bool | None = None
        self._partition: PartitionState | None = None
        self._partition_at_s = -PARTITIONS_S

    def why_refused(self, launch: Launch) -> Reason | None:
        """Return why Slurm can never start an attempt."""
        if len({_shape(one.gpus, one.cpus_milli, one.memory_mib) for one in launch.members}) > 1:
            return Reason("uneven-gang", {"engine": self.name})
        if len({one.node for one in launch.members}) != len(launch.members):
            return Reason("members-share-node", {"engine": self.name})
        spec = launch.run_spec
        if spec.image and not self._image_runtime and not self._pyxis():
            runtimes = ("pyxis", *IMAGE_RUNTIMES)
            return Reason("no-container-runtime", {"image": Text(spec.image), "runtimes": runtimes})
        return None

    def script(self, launch: LaunchLine, folder: str, folders: JobFolders) -> str:
        """Return what each member runs."""
        members = launch["members"]
        end_gang = "  :"
        if len(members) > 1:
            ranks = " ".join(str(rank) for rank in range(len(members)))
            tenths = str(max(launch["grace_ms"] // 100, 1))
            end_gang = _END_GANG.replace("@TENTHS@", tenths).replace("@RANKS@", ranks)
        first = members[0]["node"]
        user = launch.get("user")
        runs = launch
        if launch["image"] and not self._pyxis():
            runs = launch.copy()
            binds = [word for path in folders.mounts() for word in ("--bind", path)]
            nv = ["--nv"] if members[0]["gpus"] else []
            start = [self._image_runtime, "exec", *nv, *binds, "--pwd", folders.workdir]
            runs["command"] = [*start, launch["image"], *launch["command"]]
        engagement = Engagement(
            address=self._addresses.get(first, first),
            home=_home_of(user["uid"]) if user is not None else "",
            port_from="${SLURM_JOB_ID:-$$}",
            end_gang=end_gang,
        )
        return member_script(runs, folder, folders, engagement)

    def submit(self, submission: Submission) -> str:
        """Submit an attempt and return its Slurm job id."""
        launch = submission.launch
        mark = Mark(JobId(launch["job"]), launch["attempt"])
        comment = comment_of(self._home_id, submission.fence, mark)
        command = self._sbatch(launch, submission.folder, comment)
        mounts = JobFolders(self._home, launch).mounts() if self._runs_pyxis(launch) else []
        script = _batch_script(launch, submission.folder, mounts)
        try:
            answer = self._commands.run(*command, stdin=script, timeout_s=SUBMIT_TIMEOUT_S)
        except CommandFailed as failure:
            said = failure.stderr.strip().splitlines()[-1:] or ["sbatch failed"]
            if any(word in failure.stderr.lower() for word in BUSY):
                raise
            sentence = said[0].removeprefix("sbatch: error: ")
            raise EngineRefusal("engine-refused", f"Slurm: {sentence}") from None
        handle = answer.strip().partition(";")[0]
        if not handle.isdecimal():
            raise EngineRefusal("engine-refused", f"Slurm answered `{answer.strip()[:80]}`")
        return handle

    def listing(self) -> Listing:
        """Return our jobs and all nodes: two commands, however many there are."""
        jobs, foreign = read_jobs(self._commands.run(*JOBS), self._home_id)
        nodes, self._addresses = read_nodes(self._commands.run(*NODES), foreign)
        return Listing(jobs=tuple(jobs), nodes=tuple(nodes))

    def terminate(self, target: Target) -> None:
        """Send SIGTERM to the members, and not to the batch script that waits for them."""
        how = () if target.members > 1 else ("--full",)
        self._quietly("scancel", "--quiet", *how, "--signal=TERM", target.handle)

    def kill(self, target: Target, *, is_repeated: bool) -> None:
        """Kill the members; Slurm ends what they left with the job.

        A plain `scancel` would send another SIGTERM and wait for Slurm's KillWait. A batch script
        that is killed is over before its children are, so it is asked to kill them.
        """
        if target.members > 1:
            self._quietly("scancel", "--quiet", "--signal=KILL", f"{target.handle}.0")
        else:
            how = "KILL" if is_repeated else "USR1"
            self._quietly("scancel", "--quiet", "--batch", f"--signal={how}", target.handle)

    def cancel(self, handle: str) -> None:
        """Cancel a job that waits; one that has begun by now is left to `terminate`."""
        self._quietly("scancel", "--quiet", "--state=PENDING", handle)

    def cost(self) -> str:
        """Return what the commands have cost."""
        cost, lived_s = self._commands.cost, time.monotonic() - self._began_s
        return (
            f"{cost.calls} Slurm commands in {lived_s:.0f} s, {cost.seconds:.1f} s in all, "
            f"{cost.bytes_read / 1e6:.1f} MB read"
        )

    def close(self) -> None:
        """Nothing is connected between commands."""

    def _quietly(self, *command: str) -> None:
        """Run a command that may come too late: a job that is over cannot be signalled."""
        try:
            self._commands.run(*command)
        except CommandFailed as failure:
            if any(word in failure.stderr.lower() for word in BUSY):
                raise

    def _sbatch(self, launch: LaunchLine, folder: str, comment: str) -> list[str]:
        members = launch["members"]
        first, user, options = members[0], launch.get("user"), self._options
        words = {
            "job-name": f"{launch['job']}.{launch['attempt']}",
            "comment": comment,
            "nodes": str(len(members)),
            "nodelist": ",".join(member["node"] for member in members),
            "ntasks-per-node": "1",
            "cpus-per-task": str(max(-(-first["cpus_milli"] // 1_000), 1)),
            # Slurm replaces patterns in it, such as `%j`.
            "output": f"{folder}/{BATCH_OUTPUT}".replace("%", "%%"),
            "open-mode": "append",
            "chdir": "/",
            "partition": options.partition,
            "account": options.account,
            "qos": options.qos,
        }
        if first["gpus"]:
            words["gres"] = f"gpu:{len(first['gpus'])}"
        if first["memory_mib"]:
            words["mem"] = f"{first['memory_mib']}M"
        if user is not None:
            words |= {"uid": str(user["uid"]), "gid": str(user["gid"])}
        words["time"] = self._time(launch)
        named = [f"--{name}={value}" for name, value in words.items() if value]
        return ["sbatch", "--parsable", "--no-requeue", *named]

    def _time(self, launch: LaunchLine) -> str:
        """Return the time to ask for, in minutes; empty for what Slurm gives a job by itself.

        With the limit of the job, Slurm can start it before others and before a reservation. A
        partition may give less than its most to a job that names no time, and would end it then.
        """
        limit_ms, partition = launch.get("limit_ms"), self._own_partition()
        most_s = None if partition is None else partition.time_max_s
        if limit_ms is not None:
            wanted_s = (limit_ms + launch["grace_ms"]) / 1_000 + LIMIT_SLACK_S
            return _minutes(wanted_s if most_s is None else min(wanted_s, most_s))
        if partition is None or partition.time_default_s is None:
            return ""
        return "UNLIMITED" if most_s is None else _minutes(most_s)

    def _own_partition(self) -> PartitionState | None:
        """Return the partition that jobs go to; None while it is not known."""
        if time.monotonic() - self._partition_at_s >= PARTITIONS_S:
            self._partition_at_s = time.monotonic()
            named = self._options.partition
            with suppress(Unreachable):
                found = read_partitions(self._commands.run(*PARTITIONS))
                own = [one for one in found if (one.name == named if named else one.is_default)]
                self._partition = own[0] if own else None
        return self._partition

    def _pyxis(self) -> bool:
        """Return whether `srun` knows images. Asked once, and only for a job with one."""
        if self._has_pyxis is None:
            try:
                self._has_pyxis = "--container-image" in self._commands.run("srun", "--help")
            except Unreachable:
                return False
        return self._has_pyxis

    def _runs_pyxis(self, launch: LaunchLine) -> bool:
        return bool(launch["image"]) and self._pyxis()


def _minutes(seconds: float) -> str:
    return str(max(1, math.ceil(seconds / 60)))


def _batch_script(launch: LaunchLine, folder: str, mounts: Sequence[str]) -> str:
    """Return the batch script; with `mounts`, pyxis runs the members in their image."""
    members = launch["members"]
    script = f"{folder}/{NAME}"
    lines = [
        "#!/bin/sh",
        f"attempt={quote(folder)}",
        # Only the first job that Slurm starts for an attempt runs it, and only before its end.
        '[ ! -e "$attempt/end.json" ] || exit 0',
        f'mkdir "$attempt/{CLAIM}/{TAKEN}" || exit 0',
        f'echo "$SLURM_JOB_ID" > "$attempt/{CLAIM}/{OWNER}"',
    ]
    if len(members) == 1 and not mounts:
        return "\n".join([*lines, f"exec sh {quote(script)} 0", ""])
    cases = " ".join(f"{member['node']}) rank={rank} ;;" for rank, member in enumerate(members))
    inner = f"case $SLURMD_NODENAME in {cases} *) exit 126 ;; esac; exec sh {quote(script)} $rank"
    srun = ["srun", "--ntasks-per-node=1", "--cpus-per-task=$SLURM_CPUS_PER_TASK"]
    srun += ["--kill-on-bad-exit=0", "--output=/dev/null"]
    if mounts:
        inside = ",".join(f"{path}:{path}" for path in dict.fromkeys((folder, *mounts)))
        srun += [f"--container-image={quote(launch['image'])}"]
        srun += [f"--container-mounts={quote(inside)}"]
    return "\n".join([*lines, f"{' '.join(srun)} sh -c {quote(inner)}", ""])


def _shape(gpus: Sequence[int], cpus_milli: int, memory_mib: int) -> tuple[int, int, int]:
    return len(gpus), cpus_milli, memory_mib


def _home_id(home: str) -> str:
    """Return the name of this executor in comments: another one's jobs are foreign."""
    private_folder(home)
    path = Path(home) / ID_FILE
    if not path.exists():
        write_durably(str(path), secrets.token_hex(6))
    return path.read_text(encoding="ascii").strip()


def _home_of(uid: int) -> str:
    import pwd  # noqa: PLC0415

    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return ""
