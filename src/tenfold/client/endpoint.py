"""Find the control plane and the token to use with it.

Arguments win, then the environment, then the state directory, where `tenfold up` writes its
address for commands run by the same user, and last the demo in it. That token is an admin token,
so it is sent only to that address.
"""

import fcntl
import os
import pwd
import struct
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.errors import InputError, Refused, Unreachable

URL = "TENFOLD_URL"
TOKEN = "TENFOLD_TOKEN"
STATE_DIR = "TENFOLD_STATE_DIR"
OLD_STATE_DIR = "TENFOLD_HOME"
"""The old name of `TENFOLD_STATE_DIR`, still read."""
ADDRESS = "address.json"
LOCK = "up.lock"
CONTROL_PLANES = "control-planes"
"""Where control planes with a name have their own files, in the state directory."""
_FLOCK = "hhqqi"
"""`struct flock` of Linux: type, whence, start, length, PID."""
DEMO = "demo"
"""Where `tenfold up --demo` keeps its state, in the state directory."""
SYSTEM = Path("/var/lib/tenfold")
"""Root's state directory: team users could not enter one in root's home."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Address(Struct, frozen=True, kw_only=True):
    """The address file that a control plane on this machine keeps while it runs."""

    url: str
    token: str
    pid: int = 0
    failover_s: float = 0.0
    """How long it may take until a standby leads; 0 without one."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """The URL of a control plane and the token for it."""

    url: str
    token: str
    state_dir: Path | None = None
    """The state directory it was read from; a restarted control plane writes a new token there."""
    urls: tuple[str, ...] = ()
    """All control planes that share its journal, if more than one is known: any of them may lead.

    The token is sent to these and to no other, whatever a server says."""
    failover_s: float = 0.0
    """How long it may take until another control plane of this machine leads."""

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, so that no proxy is used."""
        return all(urlsplit(url).hostname in LOOPBACK for url in (self.url, *self.urls))

    @property
    def is_encrypted(self) -> bool:
        """Whether a connection uses TLS."""
        return any(url.startswith("https:") for url in (self.url, *self.urls))

    def next_url(self, leader: str = "") -> "Endpoint | None":
        """Return the control plane to try next: the leader, if it is one of ours."""
        if not self.urls:
            return None
        at = (self.urls.index(self.url) + 1) % len(self.urls)
        return replace(self, url=leader if leader in self.urls else self.urls[at])

    def reloaded(self) -> "Endpoint | None":
        """Return the endpoint in the state directory now; None if it has not changed."""
        address = None if self.state_dir is None else read_address(self.state_dir)
        if address is None or (address.url, address.token) == (self.url, self.token):
            return None
        return replace(self, url=address.url, token=address.token, failover_s=address.failover_s)


def find_state_dir(stated: Path | None = None) -> Path:
    """Return the state directory: the argument, the environment, or the user's data directory.

    Root uses the system's, unless one already exists in its data directory.
    """
    if stated is not None:
        return stated.expanduser()
    variable = os.environ.get(STATE_DIR) or os.environ.get(OLD_STATE_DIR)
    if variable:
        return Path(variable).expanduser()
    data = os.environ.get("XDG_DATA_HOME")
    if data:
        return Path(data) / "tenfold"
    user_dir = Path.home() / ".local" / "share" / "tenfold"
    return SYSTEM if _is_in_root_home(user_dir) and not user_dir.exists() else user_dir


def _is_in_root_home(folder: Path) -> bool:
    """Tell whether a folder is in root's home; `HOME` may point elsewhere."""
    return os.geteuid() == 0 and folder.is_relative_to(pwd.getpwuid(0).pw_dir)


def read_address(state_dir: Path) -> Address | None:
    """Return the address file of a state directory; None if there is none."""
    try:
        return msgspec.json.decode((state_dir / ADDRESS).read_bytes(), type=Address)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def own_folder(state_dir: Path, name: str) -> Path:
    """Return where a control plane has files of its own: its lock and its log."""
    return state_dir / CONTROL_PLANES / name if name else state_dir


def lock_holder(folder: Path) -> int | None:
    """Return the PID of the control plane of a folder; None if there is none.

    The kernel knows who holds the lock, so this is never a process that only got its PID. It is 0
    if that process is in another PID namespace.
    """
    try:
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        request = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, request))
    finally:
        os.close(file)
    return None if kind == fcntl.F_UNLCK else int(pid)


def running_state_dir(stated: Path | None = None) -> Path:
    """Return the state directory of the control plane to use: the demo's if only the demo runs."""
    state_dir = find_state_dir(stated)
    own, demo = read_address(state_dir), read_address(state_dir / DEMO)
    if demo is None or (own is not None and (_is_alive(own) or not _is_alive(demo))):
        return state_dir
    return state_dir / DEMO


def _is_alive(address: Address) -> bool:
    """Return whether the process that wrote an address may still run."""
    try:
        os.kill(address.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def find_endpoint(url: str | None = None, token: str | None = None) -> Endpoint:
    """Return the control plane to call; raise if none is configured."""
    url = url or os.environ.get(URL) or ""
    token = token or os.environ.get(TOKEN) or ""
    if url and token:
        urls = _checked_all(url)
        return Endpoint(url=urls[0], token=token, urls=urls if len(urls) > 1 else ())
    state_dir = running_state_dir()
    address = read_address(state_dir)
    if not url:
        if address is None:
            raise Unreachable(
                "no-control-plane",
                "no control plane is running on this machine "
                f"(`{state_dir / ADDRESS}` does not exist)",
                f"start one with `tenfold up`, or set {URL} and {TOKEN}",
            )
        return Endpoint(
            url=address.url,
            token=token or address.token,
            state_dir=None if token else state_dir,
            failover_s=address.failover_s,
        )
    urls = _checked_all(url)
    if address is not None and address.url in urls:
        return Endpoint(
            url=address.url,
            token=address.token,
            state_dir=state_dir,
            failover_s=address.failover_s,
        )
    raise Refused(
        "no-token",
        f"no token for `{url}`",
        f"set {TOKEN}; an admin creates tokens with `tenfold token create`",
    )


def _checked_all(url: str) -> tuple[str, ...]:
    """Return the URLs in a list with commas: control planes that share a journal."""
    return tuple(dict.fromkeys(_checked(one.strip()) for one in url.split(",")))


def _checked(url: str) -> str:
    parts = urlsplit(url)
    try:
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        port_is_good = False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_good:
        raise InputError(
            "wrong-url",
            f"`{url}` is not a control plane URL",
            "write it like http://127.0.0.1:7410; with several control planes, separate their URLs "
            "with commas",
        )
    return url.rstrip("/")
