"""The settings of an object server, passed to its processes."""

from msgspec import Struct

DEFAULT_PORT = 9000
KEYS_FILE = "access-keys.json"
UPKEEP_LOCK = "upkeep.lock"


class ServerSettings(Struct, frozen=True, kw_only=True):
    """What `tenfold objects serve` was asked for; paths are absolute."""

    folder: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    keys: str
    tiers: str = ""
    """A tier file; empty for `tiers.toml` in the folder."""
    processes: int = 1
    region: str = "us-east-1"
    domains: tuple[str, ...] = ()
    has_acls: bool = False
    tls_cert: str = ""
    tls_key: str = ""
    drain_s: float = 30.0
    requests_max: int = 4_096
    """Requests under way in one process; more are answered with SlowDown."""
    admin_port: int = -1
    """Where metrics and health are served; negative for nowhere."""
    sweep_s: float = 10.0
    """Seconds between looks at what is due: deletes, lifecycle, old uploads."""
    day_s: int = 86_400
    """Length of a day in lifecycle rules."""
