"""A real Ceph RADOS gateway: a monitor, an object storage daemon in memory, and the gateway."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from rigs.object_stores.running import ObjectStore, Processes, free_ports, require, wait_for_port

_CONFIG = """\
[global]
fsid={fsid}
mon_host=[v2:127.0.0.1:{monitor}]
auth_cluster_required=none
auth_service_required=none
auth_client_required=none
ms_mon_client_mode=crc
mon_data={folder}/mon
osd_data={folder}/osd
run_dir={folder}
log_file={folder}/$name.log
mon_data_avail_crit=0
paxos_propose_interval=0.02
paxos_min_wait=0.01
osd_objectstore=memstore
memstore_device_bytes=4294967296
osd_pool_default_size=1
osd_pool_default_pg_num=4
rgw_thread_pool_size=32
rgw_enable_gc_threads=false
rgw_enable_lc_threads=false
rgw_enable_quota_threads=false
rgw_dynamic_resharding=false
[osd]
public_addr=127.0.0.1
cluster_addr=127.0.0.1
"""
_FSID, _OSD = str(UUID(int=0x7E0F01D0)), str(UUID(int=0x7E0F01D1))
_PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool")


def require_radosgw() -> None:
    """Skip the test where the gateway is missing; fail instead where engines are required."""
    require(_PROGRAMS, "apt-get install ceph-mon ceph-osd radosgw --no-install-recommends")


@contextmanager
def running_radosgw() -> Generator[ObjectStore]:
    """Run a gateway in a folder of its own."""
    require_radosgw()
    with TemporaryDirectory(prefix="rgw") as name:
        folder = Path(name)
        processes = Processes(folder, {"CEPH_CONF": str(folder / "ceph.conf")})
        try:
            yield _start(processes)
        finally:
            processes.stop()


def _start(processes: Processes) -> ObjectStore:
    folder = processes.folder
    monitor, gateway = free_ports(2)
    (folder / "mon").mkdir()
    (folder / "osd").mkdir()
    (folder / "ceph.conf").write_text(_CONFIG.format(fsid=_FSID, monitor=monitor, folder=folder))
    address = f"[v2:127.0.0.1:{monitor}]"
    map_file = str(folder / "monmap")
    processes.run("monmaptool", "--create", "--fsid", _FSID, "--addv", "a", address, map_file)
    processes.run("ceph-mon", "-i", "a", "--mkfs", "--monmap", map_file)
    processes.start("ceph-mon", "-i", "a", "-f")
    processes.run("ceph", "--connect-timeout", "30", "osd", "new", _OSD)
    processes.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", _OSD)
    processes.start("ceph-osd", "-i", "0", "-f")
    frontend = f"beast endpoint=127.0.0.1:{gateway} tcp_nodelay=1"
    serving = processes.start("radosgw", "-f", "-n", "client.rgw", "--rgw_frontends", frontend)
    wait_for_port(gateway, serving)
    user = ("--uid", "t", "--display-name", "t", "--access-key", "AK", "--secret-key", "SK")
    processes.run("radosgw-admin", "user", "create", *user)
    return ObjectStore(f"http://127.0.0.1:{gateway}", "AK", "SK")
