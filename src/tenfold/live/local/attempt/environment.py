"""The environment of a member: its gang, devices and checkpoints.

Only the variables in `INHERITED` are passed on from the control plane: jobs must not see its
tokens. Tenfold's variables are set last, so a job file cannot impersonate another job.
"""

from collections.abc import Mapping

from tenfold.live.local.attempt.heartbeat import heartbeat_file
from tenfold.live.local.attempt.slurm_variables import slurm_variables
from tenfold.live.local.spawner.wire import LaunchLine

INHERITED = ("PATH", "LANG", "TZ")
PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ADDRESS = "127.0.0.1"
"""All members are on this machine."""


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables a job inherits from the control plane."""
    kept = {name: environment[name] for name in INHERITED if name in environment}
    return {"PATH": PATH_DEFAULT, **kept}


def member_environment(
    launch: LaunchLine, rank: int, port: int, *, home: str, attempt_folder: str, saves_folder: str
) -> dict[str, str]:
    """Return all variables of one member."""
    return {
        **launch["inherited"],
        "HOME": home,
        **_named(launch),
        **dict(launch["env"]),
        **(slurm_variables(launch, rank) if launch.get("slurm_variables") else {}),
        **_rendezvous(launch, rank, port),
        **_own(launch, rank, attempt_folder),
        **_saves(launch, saves_folder),
    }


def attempt_mark(attempt_folder: str) -> bytes:
    """Return the bytes that mark the environment of every process of an attempt, and no other."""
    return f"TENFOLD_HEARTBEAT={attempt_folder}/".encode()


def _named(launch: LaunchLine) -> dict[str, str]:
    """Name a user without an account: some programs fail without a user name."""
    if "user" not in launch:
        return {}
    return {"USER": launch["user"]["name"], "LOGNAME": launch["user"]["name"]}


def _rendezvous(launch: LaunchLine, rank: int, port: int) -> dict[str, str]:
    """Variables for torch, and defaults for `torchrun` options (PET_*)."""
    nodes = len(launch["members"])
    gpus = launch["members"][rank]["gpus"]
    values = {
        "MASTER_ADDR": ADDRESS,
        "MASTER_PORT": str(port),
        "NODE_RANK": str(rank),
        "PET_NNODES": str(nodes),
        "PET_NODE_RANK": str(rank),
        "PET_MASTER_ADDR": ADDRESS,
        "PET_MASTER_PORT": str(port),
        "PET_NPROC_PER_NODE": str(max(len(gpus), 1)),
        # The order of the driver's tools: measured GPUs are then the job's GPUs.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(str(gpu) for gpu in gpus),
    }
    if all(len(member["gpus"]) <= 1 for member in launch["members"]):
        # With one process per node, the gang needs no launcher to assign ranks.
        values |= {"RANK": str(rank), "WORLD_SIZE": str(nodes), "LOCAL_RANK": "0"}
    return values


def _own(launch: LaunchLine, rank: int, attempt_folder: str) -> dict[str, str]:
    return {
        "TENFOLD_JOB": launch["job"],
        "TENFOLD_ATTEMPT": str(launch["attempt"]),
        "TENFOLD_NODES": ",".join(member["node"] for member in launch["members"]),
        "TENFOLD_HEARTBEAT": heartbeat_file(attempt_folder, rank),
    }


def _saves(launch: LaunchLine, saves_folder: str) -> dict[str, str]:
    if not saves_folder:
        return {}
    every_ms = launch["saves_every_ms"]
    every = {} if every_ms is None else {"TENFOLD_CHECKPOINT_EVERY_S": f"{every_ms / 1_000:g}"}
    return {"TENFOLD_CHECKPOINT_DIR": saves_folder, **every}
