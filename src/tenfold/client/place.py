"""Where the control plane is and with which token it is asked.

What is said in the call comes first, then the environment, then the state folder in which
`tenfold up` leaves its address for commands of the same user. That token opens everything, so it
is shown to that address and to no other.
"""

import os
import pwd
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from tenfold.model.errors import InputError, Refused, Unreachable

URL = "TENFOLD_URL"
TOKEN = "TENFOLD_TOKEN"
HOME = "TENFOLD_HOME"
ADDRESS = "address.json"
SYSTEM = Path("/var/lib/tenfold")
"""The state folder of root. Its own folder is closed to others, and so to the users of teams."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Address(Struct, frozen=True, kw_only=True):
    """What a control plane on this machine says about itself while it runs."""

    url: str
    token: str
    pid: int = 0


class Place(Struct, frozen=True, kw_only=True):
    """An address and a token that belong together."""

    url: str
    token: str
    home: Path | None = None
    """The state folder that named it; a control plane that starts again leaves another token."""

    @property
    def is_near(self) -> bool:
        """Whether it can be reached without leaving this machine, and so without a proxy."""
        return urlsplit(self.url).hostname in LOOPBACK

    @property
    def is_encrypted(self) -> bool:
        """Whether what is said is encrypted."""
        return self.url.startswith("https:")

    def again(self) -> "Place | None":
        """Return what the state folder says now; None where that is nothing new."""
        address = None if self.home is None else address_in(self.home)
        if address is None or (address.url, address.token) == (self.url, self.token):
            return None
        return Place(url=address.url, token=address.token, home=self.home)


def home_folder(stated: Path | None = None) -> Path:
    """Return the state folder: the one stated, `TENFOLD_HOME`, or one under the user's data.

    Root's is that of the system, unless there is one under its data already.
    """
    if stated is not None:
        return stated.expanduser()
    named = os.environ.get(HOME)
    if named:
        return Path(named).expanduser()
    data = os.environ.get("XDG_DATA_HOME")
    if data:
        return Path(data) / "tenfold"
    own = Path.home() / ".local" / "share" / "tenfold"
    return SYSTEM if _is_roots(own) and not own.exists() else own


def _is_roots(folder: Path) -> bool:
    """Tell whether a folder lies at home, and that is root's; `HOME` may name another."""
    return os.geteuid() == 0 and folder.is_relative_to(pwd.getpwuid(0).pw_dir)


def address_in(home: Path) -> Address | None:
    """Return what the control plane of a state folder wrote; None where none did."""
    try:
        return msgspec.json.decode((home / ADDRESS).read_bytes(), type=Address)
    except (OSError, msgspec.DecodeError):
        return None


def find_place(url: str | None = None, token: str | None = None) -> Place:
    """Return where to ask; raise where nothing says so."""
    url = url or os.environ.get(URL) or ""
    token = token or os.environ.get(TOKEN) or ""
    if url and token:
        return Place(url=_checked(url), token=token)
    home = home_folder()
    address = address_in(home)
    if not url:
        if address is None:
            raise Unreachable(
                "no-control-plane",
                f"no control plane is running here: `{home / ADDRESS}` is not there",
                f"start one with `tenfold up`, or name one with {URL} and {TOKEN}",
            )
        own = token or address.token
        return Place(url=address.url, token=own, home=None if token else home)
    url = _checked(url)
    if address is not None and address.url == url:
        return Place(url=url, token=address.token, home=home)
    raise Refused(
        "no-token",
        f"no token is known for `{url}`",
        f"set {TOKEN}; an admin makes one with `tenfold token create`",
    )


def _checked(url: str) -> str:
    parts = urlsplit(url)
    try:
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        port_is_good = False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_good:
        raise InputError(
            "wrong-url",
            f"`{url}` is no address of a control plane",
            "write it like http://127.0.0.1:7410",
        )
    return url.rstrip("/")
