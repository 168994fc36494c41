"""The object store of a control plane, as a child process."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tenfold.objects.serve.keys import ensure_key_file
from tenfold.objects.serve.settings import KEYS_FILE
from tenfold.server.background.child_process import ChildProcess

DRAIN_S = 5.0
"""How long requests in progress may take when the control plane stops."""
END_S = 2 * DRAIN_S


class ObjectsSettings(Struct, frozen=True, kw_only=True):
    """How an object store runs beside a control plane."""

    folder: Path
    host: str
    port: int
    processes: int = 1
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False

    @property
    def url(self) -> str:
        """Return where it will serve S3."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls_certificate is None else 'https'}://{host}:{self.port}"


class ObjectsProcess(ChildProcess):
    """Runs an object store while it runs."""

    def __init__(self, settings: ObjectsSettings, state_dir: Path, log: Path) -> None:
        super().__init__("object store", ("objects: ", "admin: "), END_S, state_dir, log)
        self._settings = settings

    def words(self) -> Sequence[str]:
        """Return the command; there may be no key yet, as they are created while it runs."""
        settings = self._settings
        settings.folder.mkdir(parents=True, exist_ok=True)
        ensure_key_file(settings.folder / KEYS_FILE)
        options = {
            "--dir": settings.folder,
            "--host": settings.host,
            "--port": settings.port,
            "--processes": settings.processes,
            "--admin-port": 0,
            "--drain-timeout-s": DRAIN_S,
            "--tls-cert": settings.tls_certificate,
            "--tls-key": settings.tls_key,
        }
        given = [(name, str(value)) for name, value in options.items() if value is not None]
        words = ("objects", "serve", *(word for pair in given for word in pair))
        return (*words, "--insecure") if settings.insecure else words
