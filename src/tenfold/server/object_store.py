"""The object store of a control plane: where it serves, its access keys, and what teams store."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tenfold.model.api.objects import TeamStorage
from tenfold.objects.catalog.buckets import all_buckets
from tenfold.objects.catalog.schema import CATALOG_FILE, connect_to_read
from tenfold.objects.serve.keys import KeyFile, read_key_file, revoke_keys_of
from tenfold.objects.serve.settings import KEYS_FILE


class ObjectStoreFolder(Struct, frozen=True):
    """The folder of an object store that runs beside the control plane."""

    path: Path
    url: Callable[[], str]
    """Where it serves S3; empty while it does not."""

    @property
    def keys(self) -> Path:
        """Return the file of access keys and quotas."""
        return self.path / KEYS_FILE

    def read_keys(self) -> KeyFile:
        """Return the keys and the quotas; none before the first start."""
        return read_key_file(self.keys) if self.keys.exists() else KeyFile()

    def revoke_keys_of(self, token: str) -> None:
        """Revoke the access keys that depend on a token."""
        if self.keys.exists():
            revoke_keys_of(self.keys, token)

    def storage(self, team: str | None) -> tuple[TeamStorage, ...]:
        """Return what a team stores, or every team, by name."""
        file = self.read_keys()
        quotas = {one.name: one for one in file.teams}
        stored: dict[str, list[int]] = {
            name: [0, 0, 0] for name in (*quotas, *(key.team for key in file.keys))
        }
        for owner, objects, size_bytes in self._buckets():
            total = stored.setdefault(owner, [0, 0, 0])
            for place, more in enumerate((1, objects, size_bytes)):
                total[place] += more
        return tuple(
            TeamStorage(
                team=name,
                buckets=buckets,
                objects=objects,
                stored_bytes=size_bytes,
                quota_objects=quotas[name].quota_objects if name in quotas else 0,
                quota_bytes=quotas[name].quota_bytes if name in quotas else 0,
            )
            for name, (buckets, objects, size_bytes) in sorted(stored.items())
            if team in (None, name)
        )

    def _buckets(self) -> list[tuple[str, int, int]]:
        """Return team, objects and bytes of each bucket; none before the first start."""
        path = self.path / CATALOG_FILE
        if not path.exists():
            return []
        connection = connect_to_read(path)
        try:
            found = all_buckets(connection)
        finally:
            connection.close()
        return [(one.team, one.stored_versions, one.stored_bytes) for one in found]
