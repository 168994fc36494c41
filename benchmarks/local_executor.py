"""How fast the local executor runs jobs that do nothing, and what each costs in CPU time.

Every process counts: the client, the spawner, each supervisor and the command itself. So many
jobs run at once, as nodes with so many GPUs would; a supervisor takes one after another.
Run with `python -m benchmarks.local_executor [JOBS [SLOTS]]`.
"""

import os
import select
import sys
import tempfile
import time

from tenfold.live.executor import AttemptEnded, AttemptStarted, Launch, Member
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.local.processes import descendants
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec

JOBS, SLOTS = 200, 16
DEADLINE_S = 120.0


def launch(number: int) -> Launch:
    return Launch(
        job_id=JobId(f"job-{number}"),
        attempt=1,
        team=TeamId("bench"),
        run_spec=RunSpec(name="nothing", command=("true",)),
        members=(Member(node=NodeId("node-1")),),
    )


def cpu_ms(pid: int) -> float:
    """CPU time of a process and of all descendants that it and its own have waited for."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) * 1_000 / os.sysconf("SC_CLK_TCK")


def memory_kib(pid: int) -> tuple[int, int]:
    """Resident and proportional memory."""
    values: dict[str, int] = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        for line in file.read().splitlines()[1:]:
            name, _, rest = line.partition(":")
            values[name] = int(rest.split()[0])
    return values["Rss"], values["Pss"]


def all_cpu_ms(pid: int) -> float:
    """CPU time of a process and of all its descendants, those that live included."""
    return sum(cpu_ms(one) for one in (pid, *descendants(pid)))


def run(executor: LocalExecutor, jobs: int, slots: int) -> tuple[float, float, float]:
    """Return wall seconds, CPU ms of the client, CPU ms of everything else."""
    spawner = executor.link.spawner
    before, client_before = all_cpu_ms(spawner), time.process_time()
    began = time.monotonic()
    ordered = min(slots, jobs)
    for number in range(ordered):
        executor.start(launch(number))
    ended = started = 0
    while ended < jobs:
        assert select.select([executor], [], [], DEADLINE_S)[0], f"only {ended} of {jobs} ended"
        for seen in executor.observations():
            started += isinstance(seen, AttemptStarted)
            ended += isinstance(seen, AttemptEnded) and seen.exit_code == 0
        for number in range(ordered, min(ended + slots, jobs)):
            executor.start(launch(number))
        ordered = max(ordered, min(ended + slots, jobs))
    wall_s = time.monotonic() - began
    assert started == ended == jobs
    client_ms = (time.process_time() - client_before) * 1_000
    return wall_s, client_ms, all_cpu_ms(spawner) - before


def main(jobs: int, slots: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        executor = LocalExecutor(home)
        spawner = executor.link.spawner
        resident, own = memory_kib(spawner)
        wall_s, client_ms, others_ms = run(executor, jobs, slots)
        print(f"limits                 {executor.limits}")
        print(
            f"spawner memory         {resident / 1024:.1f} MiB resident, {own / 1024:.1f} its own"
        )
        print(f"jobs                   {jobs} of `true`, {slots} at once")
        print(f"jobs/s                 {jobs / wall_s:.0f}")
        print(f"CPU per job            {(client_ms + others_ms) / jobs:.2f} ms")
        print(f"  client               {client_ms / jobs:.2f} ms")
        print(f"  spawner, supervisor, command {others_ms / jobs:.2f} ms")
        gone = os.pidfd_open(spawner)
        executor.stop_spawner()
        executor.close()
        select.select([gone], [], [], 10)
        os.close(gone)


if __name__ == "__main__":
    asked = [int(word) for word in sys.argv[1:]]
    main(*asked, *(JOBS, SLOTS)[len(asked) :])
