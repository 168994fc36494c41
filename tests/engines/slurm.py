"""A real Slurm for tests: munge, a controller and a daemon a node, on loopback.

Everything lives in one folder and on ports that were free; daemons stay children in the
foreground, so that they are ended by their own pid, whatever happens in the test.
"""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

import pytest
from msgspec import Struct

from tests.patience import HANG_S

COMMANDS = ("munged", "slurmctld", "slurmd", "scontrol", "sinfo")
ACCOUNTING_COMMANDS = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacct", "sacctmgr")
START_TIMEOUT_S = HANG_S
STOP_TIMEOUT_S = 20.0


class SlurmNode(Struct, frozen=True, kw_only=True):
    """One node as `slurm.conf` states it; its GPUs are device files that do nothing."""

    name: str
    cpus: int
    memory_mib: int
    gpu_type: str = ""
    gpus: int = 0
    features: str = ""


class Daemons:
    """The daemons of one Slurm by name: `slurmctld`, or that of a node. Each can be killed."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self._commands: dict[str, tuple[str, ...]] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """Start a daemon; without a command, as the last time."""
        command = self._commands[name] = command or self._commands[name]
        program = _program(command[0])
        assert program is not None, "checked by require_slurm"
        with (self._folder / "daemons.log").open("ab") as log:
            process = subprocess.Popen(
                [program, *command[1:]],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes[name] = process
        return process

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a daemon, and wait until it is gone."""
        process = self._processes[name]
        process.send_signal(how)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)

    def pid(self, name: str) -> int:
        """Return the process of a daemon."""
        return self._processes[name].pid

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a daemon."""
        self._processes[name].send_signal(number)

    def end_all(self) -> None:
        """End every daemon, the last one first."""
        for name in reversed(list(self._processes)):
            self.end(name)


class RunningSlurm(Struct, frozen=True, kw_only=True):
    """A Slurm whose nodes are idle. Commands find it through `environment`."""

    folder: Path
    environment: dict[str, str]
    daemons: Daemons

    def ask(self, *command: str) -> str:
        """Run one of Slurm's commands against this cluster and return what it prints."""
        answer = subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
            check=False,
        )
        assert answer.returncode == 0, f"{' '.join(command)}: {answer.stderr.strip()}"
        return answer.stdout


def require_slurm() -> None:
    """Skip the test where Slurm cannot run; fail instead where engines are required."""
    missing = [command for command in COMMANDS if _program(command) is None]
    reason = ""
    if missing:
        reason = (
            f"no {', '.join(missing)} here: apt-get install slurmctld slurmd slurm-client munge"
        )
    elif os.geteuid() != 0:
        reason = "fake GPUs need mknod, which needs root"
    if reason and os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
        pytest.fail(f"TENFOLD_REQUIRE_ENGINES=1, but {reason}")
    if reason:
        pytest.skip(reason)


def require_accounting() -> None:
    """Skip the test where Slurm cannot record its jobs; fail where engines are required."""
    missing = [command for command in ACCOUNTING_COMMANDS if _program(command) is None]
    if not missing:
        return
    reason = f"no {', '.join(missing)} here: apt-get install slurmdbd mariadb-server"
    if os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
        pytest.fail(f"TENFOLD_REQUIRE_ENGINES=1, but {reason}")
    pytest.skip(reason)


def _start_accounting(daemons: Daemons, folder: Path, environment: dict[str, str]) -> None:
    """Start MariaDB and slurmdbd, and add the lines to slurm.conf that point to them."""
    home = folder / "accounting"
    home.mkdir(mode=0o700)
    database_port, port = _free_ports(2)
    subprocess.run(
        [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={home}/data",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--user=root",
        ],
        capture_output=True,
        check=True,
        timeout=START_TIMEOUT_S,
    )
    (home / "init.sql").write_text(
        "CREATE DATABASE slurm;\n"
        "CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm';\n"
        "GRANT ALL ON slurm.* TO 'slurm'@'127.0.0.1';\n"
    )
    database = daemons.start(
        "mariadbd",
        "mariadbd",
        "--no-defaults",
        f"--datadir={home}/data",
        f"--socket={home}/socket",
        f"--pid-file={home}/mariadb.pid",
        "--bind-address=127.0.0.1",
        f"--port={database_port}",
        "--skip-name-resolve",
        "--innodb-buffer-pool-size=64M",
        "--innodb-flush-log-at-trx-commit=2",
        "--user=root",
        f"--init-file={home}/init.sql",
    )
    _until(database, lambda: _accepts(database_port), "MariaDB to accept connections", folder)
    conf = folder / "slurmdbd.conf"
    conf.write_text(f"""\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={home}/slurmdbd.log
PidFile={home}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
""")
    conf.chmod(0o600)
    with (folder / "slurm.conf").open("a") as lines:
        lines.write(f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge/socket
AccountingStorageTRES=gres/gpu
JobAcctGatherType=jobacct_gather/linux
""")
    slurmdbd = daemons.start("slurmdbd", "slurmdbd", "-D")
    _until(slurmdbd, lambda: _accepts(port), "slurmdbd to accept connections", folder)
    _until(slurmdbd, lambda: _add_cluster(environment), "sacctmgr to add the cluster", folder)


def _add_cluster(environment: dict[str, str]) -> bool:
    command = ["sacctmgr", "-i", "add", "cluster", "tenfold"]
    answer = subprocess.run(
        command, env=environment, capture_output=True, check=False, timeout=START_TIMEOUT_S
    )
    return answer.returncode == 0


def _accepts(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1.0)
        return one.connect_ex(("127.0.0.1", port)) == 0


def _program(command: str) -> str | None:
    return shutil.which(command, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@contextmanager
def running_slurm(
    folder: Path,
    nodes: Sequence[SlurmNode],
    conf_lines: Sequence[str] = (),
    partitions: Sequence[str] = (),
    *,
    accounting: bool = False,
) -> Iterator[RunningSlurm]:
    """Start a Slurm of these nodes, give it once all of them are idle, and end it.

    With `accounting`, it records its jobs in slurmdbd on MariaDB, and `sacct` works.
    """
    require_slurm()
    if accounting:
        require_accounting()
    socket_path = folder / "munge" / "socket"
    for name in ("munge", "controller", "nodes", "dev"):
        (folder / name).mkdir(mode=0o700)
    for name in ("munge", "nodes"):
        # Jobs of other users reach the socket and their scripts through them.
        (folder / name).chmod(0o711)
    _write_conf(folder, nodes, [*conf_lines, *(partitions or [_partition("all", nodes)])])
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    daemons = Daemons(folder, environment)
    slurm = RunningSlurm(folder=folder, environment=environment, daemons=daemons)
    try:
        munged = daemons.start("munged", *_munged(folder))
        _until(munged, socket_path.exists, "munged to open its socket", folder)
        if accounting:
            _start_accounting(daemons, folder, environment)
        controller = daemons.start("slurmctld", "slurmctld", "-D", "-c")
        for node in nodes:
            daemons.start(node.name, "slurmd", "-D", "-N", node.name)
        _until(controller, lambda: _all_idle(slurm, nodes), "every node to be idle", folder)
        yield slurm
    finally:
        daemons.end_all()


def _munged(folder: Path) -> list[str]:
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    places = {"key-file": "key", "socket": "socket", "pid-file": "pid"}
    places |= {"log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={folder / 'munge' / name}" for option, name in places.items()]
    return ["munged", "--foreground", "--force", *options]


def _partition(name: str, nodes: Sequence[SlurmNode]) -> str:
    members = ",".join(node.name for node in nodes)
    return f"PartitionName={name} Nodes={members} Default=YES State=UP"


def _write_conf(folder: Path, nodes: Sequence[SlurmNode], lines: Sequence[str]) -> None:
    hostname = socket.gethostname().partition(".")[0]
    address, binding = _loopback(hostname)
    controller_port, *ports = _free_ports(len(nodes) + 1)
    conf = f"""\
ClusterName=tenfold
SlurmctldHost={hostname}({address})
SlurmctldPort={controller_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/controller
SlurmctldPidFile={folder}/controller.pid
SlurmctldLogFile={folder}/controller.log
SlurmdPidFile={folder}/nodes/%n.pid
SlurmdLogFile={folder}/nodes/%n.log
SlurmdSpoolDir={folder}/nodes/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
GresTypes=gpu
ReturnToService=2
MpiDefault=none
{binding}
"""
    gres: list[str] = []
    for node, port in zip(nodes, ports, strict=True):
        words = [f"NodeName={node.name} NodeHostname={hostname} NodeAddr={address} Port={port}"]
        words.append(f"CPUs={node.cpus} RealMemory={node.memory_mib}")
        if node.gpus:
            words.append(f"Gres=gpu:{node.gpu_type}:{node.gpus}")
            files = _fake_gpus(folder / "dev", node)
            gres.append(f"NodeName={node.name} Name=gpu Type={node.gpu_type} File={files}")
        if node.features:
            words.append(f"Feature={node.features}")
        conf += " ".join(words) + "\n"
    (folder / "slurm.conf").write_text(conf + "\n".join(lines) + "\n")
    (folder / "gres.conf").write_text("\n".join(gres) + "\n")


def _loopback(hostname: str) -> tuple[str, str]:
    """Return an address of loopback, and the line that keeps the daemons to it.

    That line makes them listen where their own name points, so it is only of use where
    that is loopback, as on most machines; elsewhere they listen everywhere.
    """
    try:
        own = socket.gethostbyname(hostname)
    except OSError:
        own = ""
    if own.startswith("127."):
        return own, "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny"
    return "127.0.0.1", ""


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _fake_gpus(folder: Path, node: SlurmNode) -> str:
    """Make device files like /dev/null: Slurm only counts them and hands them out."""
    null = os.stat("/dev/null")
    for number in range(node.gpus):
        path = folder / f"gpu{number}"
        if not path.exists():
            os.mknod(path, null.st_mode, null.st_rdev)
    return f"{folder}/gpu[0-{node.gpus - 1}]" if node.gpus > 1 else f"{folder}/gpu0"


def _until(
    process: subprocess.Popen[bytes], holds: Callable[[], bool], what: str, folder: Path
) -> None:
    """Wait until a condition holds, for as long as the daemon lives and the time allows."""
    deadline = monotonic() + START_TIMEOUT_S
    while not holds():
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            if monotonic() < deadline:
                continue
        pytest.fail(f"waited for {what}, in vain:\n{_logs(folder)}")


def _all_idle(slurm: RunningSlurm, nodes: Sequence[SlurmNode]) -> bool:
    try:
        states = slurm.ask("sinfo", "--noheader", "--Node", "--format=%N %T").split("\n")
    except subprocess.SubprocessError:
        return False
    idle = {line.split()[0] for line in states if line.endswith(" idle")}
    return all(node.name in idle for node in nodes)


def _logs(folder: Path) -> str:
    logs = [folder / "daemons.log", folder / "accounting" / "slurmdbd.log"]
    logs += [folder / "controller.log", *sorted(folder.glob("nodes/*.log"))]
    return "\n".join(f"{log.name}:\n{log.read_text()[-1500:]}" for log in logs if log.exists())
