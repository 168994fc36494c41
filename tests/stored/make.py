"""Make the stored records: run once, at commit 70aabbe, and kept to show how they came to be.

    .venv/bin/python tests/stored/make.py [journal] [compacted] [bundles] [checkpoint] [specimens]
        [running]

70aabbe is the last commit before wire names were pinned. Made again by later code the records would
prove nothing about journals that users have, so none is ever replaced, and this file is not kept up
with names that change: it runs at that commit alone. A new format adds files beside these.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import types
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Literal, Union, get_args, get_origin

sys.path.insert(0, str(Path(__file__).parents[1]))

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType
from sqlalchemy.engine import make_url as url_of
from tenfold.study.soak import simulated
from tenfold.testing.worlds import SmallWorld, drawn_world

import tenfold
from engines.postgres import new_database, running_postgres
from journal_builders import policy_for
from replay_builders import ROUGH, crowd, request
from stored.reading import DATA, TOKEN, plain, told_of_bundle, told_of_journal, write_expected
from stored.wire_types import ROOTS
from tenfold import checkpoint
from tenfold.compose.live_shadow import LiveShadow
from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Witness, World, run
from tenfold.files.records.replay_bundle import BundleHeader, read_bundle
from tenfold.files.records.shadow_log import ShadowLog, latest_entries
from tenfold.fleet.failure_log import KEEPS_FAILING
from tenfold.journal.append import open_journal
from tenfold.journal.compaction import compact_once
from tenfold.journal.policies import note_policy
from tenfold.journal.record import record_of
from tenfold.journal.snapshots import Snapshotter, restore, save_snapshot
from tenfold.journal.store import open_store
from tenfold.model.acceptance import REFUSED, Figure, FigureComparison, NodeTest, NodeVerdict
from tenfold.model.actions import Action, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobBusy,
    JobCancelled,
    JobEnded,
    JobIdled,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeAccepted,
    NodeCordoned,
    NodeLost,
    NodeReturned,
    NodeTested,
)
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.job.submission import SubmitKey
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, MINUTE, SECOND, Millis
from tenfold.study.replay.bundle import simulate_recorded, verify
from unit.up_process import Up

SEED = 194
"""A world under which every action is ordered: starts, stops, refusals, resizes and promises."""
EVERY = 45
"""Events from one snapshot to the next."""
LATER_MS = Millis(400 * HOUR)
"""When the live writers follow the simulated one."""


class Killed(Exception):
    """The controller is gone."""


class Script:
    """A world that says what it was told to, refuses some starts, and may die after orders."""

    def __init__(
        self,
        turns: Sequence[tuple[int, Sequence[Event]]],
        refused: tuple[str, ...] = (),
        *,
        dies: bool = False,
    ) -> None:
        self._turns = iter(turns)
        self._refused = list(refused)
        self._dies = dies

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        turn = next(self._turns, None)
        return None if turn is None else (Millis(LATER_MS + turn[0]), turn[1])

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        if self._dies and actions:
            raise Killed
        made: list[Event] = []
        for action in actions:
            if isinstance(action, StartJob) and action.job_id in self._refused:
                self._refused.remove(action.job_id)
                node = action.slots[0].node
                failure = AttemptFailure(1, "refused", now_ms, node, message="no room on the disk")
                reason = Reason("cannot-write", sentence="the folder of the attempt cannot be made")
                made.append(ActionRefused(now_ms, action, reason, failure))
            elif isinstance(action, StartJob):
                made.append(JobStarted(now_ms, action.job_id))
            elif isinstance(action, StopJob):
                made.append(JobStopped(now_ms, action.job_id, action.cause, Millis(0)))
            elif isinstance(action, ResizeJob):
                made.append(JobResized(now_ms, action.job_id))
        return made


def at(minutes: float) -> Millis:
    return Millis(LATER_MS + round(minutes * MINUTE))


def handed_in(
    minutes: float,
    name: str,
    number: int,
    gpus: float = 1,
    *,
    terms: Terms | None = None,
    key: SubmitKey | None = None,
    spec: RunSpec | None = None,
) -> JobSubmitted:
    job = Job(
        id=JobId(name),
        shape=shape_of(gpus, cpus=0.5, memory_gib=1),
        submitted_ms=at(minutes),
        seq=number,
        team=TeamId("vision"),
        user="ada",
        qos="normal",
        priority=3,
        limit_ms=Millis(40 * HOUR),
        terms=terms,
    )
    made = spec or RunSpec(
        name=name.partition("-")[0], command=("python", "train.py", "--epochs=3")
    )
    return JobSubmitted(at(minutes), job, made, key)


RICH_SPEC = RunSpec(
    name="rich",
    command=("torchrun", "train.py"),
    env=(("EPOCHS", "3"), ("NAME", "gross \u00fc")),
    folder="runs/rich",
    image="registry.example/train:1",
    checkpoint=CheckpointSpec(folder="saves", every_ms=Millis(10 * MINUTE)),
    grace_ms=Millis(90 * SECOND),
    silent_ms_most=Millis(5 * MINUTE),
    trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
)


def live_turns(nodes: Sequence[NodeId]) -> list[tuple[int, Sequence[Event]]]:
    """Return facts of every kind that only a live world tells of."""
    first, second, third = nodes[:3]
    figures = (Figure("gemm_bf16", 412.5, "TFLOP/s"), Figure("copy", 1.9, "TB/s"))
    refusal = Reason(REFUSED, sentence="gemm_bf16 is 31% below the middle of its pool")
    test = NodeTest(figures=figures, unmeasured=(Reason("no-nccl", sentence="it has one GPU"),))
    compared = FigureComparison(
        name="gemm_bf16",
        unit="TFLOP/s",
        value=412.5,
        median=597.8,
        deviation=-0.31,
        allowed=0.2,
        judged="slow",
    )
    verdict = NodeVerdict(
        is_accepted=False,
        basis="pool",
        nodes=3,
        compared=(compared,),
        reason=refusal,
        notes=("one figure is missing",),
    )
    key = SubmitKey(TeamId("vision"), "sweep-1", "0f" * 16)
    members = [
        handed_in(4, f"sweep-110[{n}]", 110 + n, terms=Terms(array="sweep-110", array_most=2))
        for n in range(3)
    ]
    members[0] = msgspec.structs.replace(members[0], key=key)
    waits = Terms(
        kind="training", after=(JobId("rich-101"), JobId("sweep-110[0]")), idle_ms=Millis(HOUR)
    )
    crashed = AttemptFailure(
        1, "exited", at(9), first, saved_ms=at(8), message="CUDA error: out of memory"
    )
    events: list[tuple[float, list[Event]]] = [
        (0, [NodeTested(at(0), third, test, verdict), NodeCordoned(at(0), third, refusal)]),
        (1, [NodeAccepted(at(1), third, "ops"), NodeReturned(at(1), third)]),
        (
            2,
            [handed_in(2, "half-100", 100, 0.5), handed_in(2, "rich-101", 101, spec=RICH_SPEC)],
        ),
        (3, [handed_in(3, "after-102", 102, terms=waits)]),
        (4, [*members]),
        (5, [JobIdled(at(5), JobId("half-100"), at(4))]),
        (
            6,
            [
                JobBusy(
                    at(6),
                    JobId("half-100"),
                    Reason("use-unknown", sentence="its GPUs do not answer"),
                )
            ],
        ),
        (7, [JobIdled(at(7), JobId("half-100"), at(6.5))]),
        (10, [JobStopped(at(10), JobId("rich-101"), "crashed", at(0), 134, crashed, at(9))]),
        (11, [NodeCordoned(at(11), second, Reason(KEEPS_FAILING, sentence="3 jobs failed here"))]),
        (12, [JobEnded(at(12), JobId("sweep-110[0]"), "completed", 0)]),
        (
            13,
            [
                JobEnded(
                    at(13),
                    JobId("sweep-110[1]"),
                    "failed",
                    exit_code=1,
                    failure=AttemptFailure(1, "out-of-memory", at(12.5), first),
                    ended_ms=at(12.6),
                )
            ],
        ),
        (14, [JobEnded(at(14), JobId("sweep-110[2]"), "cancelled", 143, UNSET, "ada")]),
        (15, [NodeLost(at(15), third, "no answer for 30 s")]),
        (16, [NodeCordoned(at(16), first)]),
        (17, [handed_in(17, "huge-120", 120, 4_096), handed_in(17, "late-121", 121)]),
    ]
    return [(round(minutes * MINUTE), facts) for minutes, facts in events]


def write_journal(address: str | Path, shadow: Callable[[], None] = lambda: None) -> None:
    """Write one journal by four controllers, two of which decide by other policies."""
    world = drawn_world(Random(SEED), jobs=(14, 20), faults=(1, 3), governed=True)
    governed = policy_for(world, "governed")
    _life(address, 1, governed, simulated(world), world)
    shadow()
    nodes = [node.id for node in world.nodes if node.gpus]
    turns = live_turns(nodes)
    tenfold = Policy(keep_factor=0.25, placement="best-fit", las_limits_gpu_s=(60, 600))
    _life(address, 2, tenfold, Script(turns, ("rich-101",)), world)
    slurm = Policy(name="slurm", slurm=world.slurm)
    cancelled = JobCancelled(at(20), JobId("after-102"), "ada")
    more = [handed_in(20, f"more-{number}", number) for number in (130, 131)]
    _life(address, 3, slurm, Script([(20 * MINUTE, [cancelled, *more])], dies=True), world)
    ends = [JobEnded(at(30), JobId("half-100")), NodeReturned(at(30), nodes[0])]
    _life(address, 4, slurm, Script([(30 * MINUTE, ends)]), world)
    shadow()


def _life(
    address: str | Path, number: int, policy: Policy, world: World, small: SmallWorld
) -> None:
    with closing(open_store(address)) as store:
        writer = open_journal(store, f"controller-{number}", LATER_MS + number)
        note_policy(writer, policy)
        fleet = restore(store).fleet
        writer.close_interrupted_cycle(fleet, at(20))
        decider = placing_decider(policy, small.restart_cost_ms if number == 1 else 0)
        witnesses: list[Witness] = [writer]
        if number == 1:
            witnesses.append(Snapshotter(writer, every=EVERY))
        try:
            run(world, fleet, [decider], journal=writer, witnesses=witnesses)
        except Killed:
            # What waited for the next commit goes with the process.
            return
        writer.flush()
        if number > 1:
            save_snapshot(writer, fleet)


def packed(path: Path, to: Path) -> None:
    """Keep a SQLite file with small pages, compressed; the same content is the same file."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        database.execute("PRAGMA page_size=1024")
        database.execute("VACUUM")
    to.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


def make_journal() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        write_journal(path)
        told = told_of_journal(path)
        write_expected("journal", told)
        with closing(open_store(path)) as store:
            found = verify(record_of(store).bundle)
            assert found.same, found
        packed(path, DATA / "journal.db.gz")
    with running_postgres() as server:
        address = new_database(server, "stored")
        write_journal(address)
        assert told_of_journal(address) == told
        _dump(address)


def _dump(address: str) -> None:
    import pgserver  # noqa: PLC0415

    program = Path(pgserver.__file__).parent / "pginstall" / "bin" / "pg_dump"
    url = url_of(address).set(drivername="postgresql").render_as_string(hide_password=False)
    words = [str(program), "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=100"]
    made = subprocess.run([*words, url], capture_output=True, text=True, check=True)
    # Without the versions of the programs and the settings that only psql needs.
    lines = [
        line
        for line in made.stdout.splitlines()
        if line and not line.startswith(("--", "SET ", "SELECT pg_catalog.set_config", "\\"))
    ]
    (DATA / "postgres.sql").write_text("\n".join(lines) + "\n")


def make_compacted() -> None:
    """Make a state folder whose older events were moved out in two parts, with a shadow's log."""
    target = DATA / "compacted"
    shutil.rmtree(target, ignore_errors=True)
    (target / "history").mkdir(parents=True)
    with TemporaryDirectory() as folder:
        home = Path(folder)
        path, log = home / "journal.db", home / "shadow.jsonl"
        write_journal(path, lambda: _follow(path, log))
        with closing(open_store(path)) as store:
            for part in (60, 70):
                made = compact_once(
                    store, home / "history", LATER_MS, BundleHeader(tenfold="0.1.0"), part=part
                )
                assert made is not None, "there is something to move"
        told = told_of_journal(path)
        for file in sorted((home / "history").glob("*.jsonl.gz")):
            shutil.copy(file, target / "history")
            told[file.name] = [told_of_bundle(read_bundle(file))]
        told[log.name] = plain(latest_entries(log, 1_000))
        shutil.copy(log, target)
        write_expected("compacted", told)
        with closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE exports SET file = replace(file, ?, '@HOME@')", (str(home),))
            database.commit()
        packed(path, target / "journal.db.gz")


def _follow(journal: Path, log: Path) -> None:
    """Let a policy on trial read a journal to its end."""
    with closing(open_store(journal)) as store, closing(ShadowLog(log)) as written:
        shadow = LiveShadow(store, Policy(name="edf"), written)
        while shadow.step():
            pass
        shadow.mark()


def make_bundles() -> None:
    for name, policy in (("tenfold", "tenfold"), ("las", "las")):
        path = DATA / f"run-{name}.jsonl.gz"
        asked = request(policy, jobs=crowd(1, 25, shares=True), settings=ROUGH)
        simulate_recorded(asked, bundle=path, force=True)
        found = verify(read_bundle(path))
        assert found.same, found
        write_expected(f"run-{name}", told_of_bundle(read_bundle(path)))


def checkpoint_values() -> dict[str, Any]:
    """Return values of every kind that a checkpoint holds."""
    weights = {"layer.0": np.arange(12, dtype=np.float32).reshape(3, 4)}
    return {
        "weights": {**weights, "bias": np.array([1, -2, 3], dtype=np.int64)},
        "step": 7,
        "rate": 0.125,
        "name": "gross \u00fc",
        "raw": b"\x00\xff",
        "none": None,
        "flag": True,
        "list": [1, (2, 3.5)],
        "empty": {},
    }


def make_checkpoint() -> None:
    """Make a folder of checkpoints as training code keeps it."""
    target = DATA / "checkpoint"
    shutil.rmtree(target, ignore_errors=True)
    for step in (6, 7):
        checkpoint.save(target, step, checkpoint_values(), how=checkpoint.How(attempt=3))
    (target / "lock").unlink()


class Filler:
    """Makes values of a type: every field said and unlike its default, or none that need not be."""

    def __init__(self) -> None:
        self._count = 0

    def all_of(self, hint: Any) -> list[Any]:
        """Return values of a type, one for each alternative of a union."""
        if get_origin(hint) in (Union, types.UnionType):
            return [self.one(part) for part in get_args(hint) if part is not UnsetType]
        return [self.one(hint)]

    def one(self, hint: Any) -> Any:  # noqa: C901 - one branch for each kind of type
        """Return a value with every field said."""
        self._count += 1
        origin, parts = get_origin(hint), get_args(hint)
        if hasattr(hint, "__supertype__"):
            return self.one(hint.__supertype__)
        if hasattr(hint, "__value__"):
            return self.one(hint.__value__)
        if origin is Literal:
            return parts[-1]
        if hasattr(hint, "__metadata__"):
            return self.one(parts[0])
        if origin in (Union, types.UnionType):
            said = [part for part in parts if part not in (type(None), UnsetType)]
            return self.one(said[self._count % len(said)])
        if origin is tuple:
            return (
                tuple(value for _ in range(2) for value in self.all_of(parts[0]))
                if parts[-1] is Ellipsis
                else tuple(self.one(part) for part in parts)
            )
        if origin is list:
            return self.all_of(parts[0])
        if origin is dict:
            return {self.one(parts[0]): self.one(parts[1])}
        if isinstance(hint, type) and issubclass(hint, Struct):
            return self._struct(hint)
        made = {int: self._count, float: self._count + 0.5, str: f"s{self._count}"}
        if hint in made:
            return made[hint]
        assert hint is bool, hint
        return True

    def _struct(self, kind: type[Struct]) -> Struct:
        fields = msgspec.structs.fields(kind)
        said = {field.name: self.one(field.type) for field in fields}
        for field in fields:
            if field.type is bool and field.default is True:
                said[field.name] = False
        return kind(**said)


def make_specimens() -> None:
    """Make one record of each type with every field said, and one with only what must be said."""
    records: dict[str, list[Any]] = {}
    for root, hint in ROOTS.items():
        rows: list[Any] = []
        for full in Filler().all_of(hint):
            kind = type(full)
            must = {field.encode_name for field in msgspec.structs.fields(kind) if field.required}
            whole = json.loads(msgspec.json.encode(full))
            tag = kind.__struct_config__.tag_field
            least = {key: value for key, value in whole.items() if key in must or key == tag}
            for said in (whole, least):
                decoded = msgspec.convert(said, hint)
                rows.append([said, plain(decoded, defaults=True)])
        records[root] = rows
    write_expected("specimens", records)


GATED = 'echo begun; read word < "$GATE"; echo $word'
STAYS = "trap 'echo told; exit 0' TERM; echo begun; while :; do sleep 0.1; done"
FLEET = """name = "two"

[[pool]]
name = "h100"
nodes = 2
accelerator = "H100-80G-SXM"
gpus_per_node = 8
"""
FIRST_MS = 1_735_689_600_000
"""The first fact of the folder is moved to this moment, so that no machine's clock is before it."""


def make_running() -> None:
    """Make the state folder of a control plane that was killed while jobs ran, waited and ended."""
    target = DATA / "running"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    (target / "fleet.toml").write_text(FLEET)
    with TemporaryDirectory() as folder:
        home, gates = Path(folder) / "home", Path(folder) / "gates"
        gates.mkdir()
        for name in ("runs", "ends"):
            os.mkfifo(gates / name)
        os.environ.clear()
        os.environ.update(PATH="/usr/local/bin:/usr/bin:/bin", LANG="C.UTF-8")
        os.environ["TENFOLD_HOME"] = str(home)
        up = Up(home)
        # Under a policy that stops nobody for others: the folder will be read years later.
        up.start("--fleet", str(target / "fleet.toml"), "--policy", "fifo", "--team-users", "off")
        with tenfold.Client() as client:
            _hand_in(client, gates)
        up.kill()
        supervisors = _end_one_and_lose_one(home / "run", gates)
        _keep(home, gates, target)
        for pid in supervisors:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        with closing(sqlite3.connect(target / "journal.db")) as database:
            for statement in database.iterdump():
                assert folder not in statement
        told = told_of_journal(target / "journal.db")
        write_expected("running", told)
        packed(target / "journal.db", target / "journal.db.gz")
        for beside in target.glob("journal.db*"):
            if beside.suffix != ".gz":
                beside.unlink()


def _hand_in(client: tenfold.Client, gates: Path) -> None:
    gated = ["sh", "-c", GATED]
    made = [
        client.submit(
            name="runs",
            command=gated,
            env={"GATE": str(gates / "runs")},
            nodes=2,
            gpus_per_node=2,
            team="vision",
            grace="5s",
            key="once",
        ),
        client.submit(name="stays", command=["sh", "-c", STAYS], gpus_per_node=2, grace="20s"),
        client.submit(name="lost", command=["sleep", "600"], gpus_per_node=1),
        client.submit(
            name="ends", command=gated, env={"GATE": str(gates / "ends")}, gpus_per_node=1
        ),
    ]
    wanted = [one.id for one in made]
    for event in client.events(after=0):
        if event.kind == "JobStarted":
            wanted.remove(event.body["job_id"])
        if not wanted:
            break
    for one in made:
        while one.name != "lost" and "begun" not in client.logs(one.id):
            time.sleep(0.05)
    client.submit(name="waits", command=["echo", "at last"], nodes=2, gpus_per_node=8)


def _end_one_and_lose_one(run: Path, gates: Path) -> list[int]:
    """With the control plane gone, one job ends and one loses its supervisor; return the others."""
    (gates / "ends").write_text("go\n")
    ends = next((run / "attempts").glob("ends-*/1"))
    while not (ends / "end.json").exists():
        time.sleep(0.05)
    watching = {path.parts[-3]: _supervisor(path) for path in run.glob("attempts/*/1/record")}
    for process in Path("/proc").glob("[0-9]*"):
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        pid = int(process.name)
        if str(run) in words and pid not in watching.values():
            os.kill(pid, signal.SIGKILL)
    [lost] = [name for name in watching if name.startswith("lost-")]
    os.kill(watching[lost], signal.SIGKILL)
    return [pid for name, pid in watching.items() if name != lost]


def _supervisor(record: Path) -> int:
    said = [json.loads(line).get("supervisor") for line in record.read_text().splitlines()]
    return next(pid for pid in said if pid is not None)


def _keep(home: Path, gates: Path, target: Path) -> None:
    """Copy the folder with placeholders for paths and processes, and its layout as a listing."""
    with closing(sqlite3.connect(home / "journal.db")) as database:
        dump = "\n".join(database.iterdump())
    first = int(re.findall(r"\b1[78]\d{11}\b", dump)[0])

    def moved(found: re.Match[str]) -> str:
        return str(int(found[0]) - first + FIRST_MS)

    def without(text: str) -> str:
        text = text.replace(str(gates), "@GATES@").replace(str(home), "@HOME@")
        return re.sub(r"\b1[78]\d{11}\b", moved, text)

    with closing(sqlite3.connect(target / "journal.db")) as database:
        database.executescript(without(dump))
        database.execute("UPDATE lease SET holder = 'host:1'")
        database.execute("UPDATE writers SET holder = 'host:1'")
        database.execute("DELETE FROM tokens WHERE name != 'admin'")
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        database.execute("UPDATE tokens SET digest = ?, expires_ms = 9000000000000", (digest,))
        database.commit()
    layout: list[str] = []
    for path in sorted(home.rglob("*")):
        name, status = str(path.relative_to(home)), path.lstat()
        if name.startswith(("journal.db", "logs", "up.lock", "address", "first-job")):
            continue
        kind = stat.S_IFMT(status.st_mode)
        letter = {stat.S_IFDIR: "d", stat.S_IFIFO: "p", stat.S_IFSOCK: "s"}.get(kind, "-")
        if letter == "-" and status.st_nlink == 2 and name.startswith("run/open/"):
            job, _, number = path.name.rpartition(".")
            layout.append(
                f"l {stat.S_IMODE(status.st_mode):04o} {name} run/attempts/{job}/{number}/record"
            )
            continue
        layout.append(f"{letter} {stat.S_IMODE(status.st_mode):04o} {name}")
        if letter == "-":
            text = without(path.read_text())
            text = re.sub(r'("supervisor": )\d+', r"\1@SUPERVISOR@", text)
            text = re.sub(r'("pids": )\[[\d, ]+\]', r"\1@PIDS@", text)
            copy = target / "files" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
    (target / "layout.txt").write_text("\n".join(layout) + "\n")


if __name__ == "__main__":
    os.environ.pop("TENFOLD_HOME", None)
    for word in sys.argv[1:] or (
        "journal",
        "compacted",
        "bundles",
        "checkpoint",
        "specimens",
        "running",
    ):
        globals()[f"make_{word}"]()
    for file in sorted(DATA.rglob("*")):
        if file.is_file():
            print(f"{file.stat().st_size:8,} {file.relative_to(DATA)}")
