"""An object store's folder as operations open it, beside the servers that run on it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tenfold.clock import wall
from tenfold.model.errors import InputError
from tenfold.objects.blobs.store import BlobStore
from tenfold.objects.catalog.catalog import Catalog
from tenfold.objects.catalog.moves import Moves
from tenfold.objects.catalog.schema import CATALOG_FILE
from tenfold.objects.tiers.backend_states import BackendStates
from tenfold.objects.tiers.mover import Mover, mover_lock
from tenfold.objects.tiers.opened import TIER_FILE, open_blob_store
from tenfold.objects.tiers.pace import Pace


class Namespace:
    """The tiers, the catalogue and the backend states of a folder."""

    def __init__(self, folder: Path, tier_file: Path) -> None:
        self.folder = folder
        self.store: BlobStore = open_blob_store(tier_file, folder)
        self.catalog = Catalog(folder / CATALOG_FILE)
        self.moves = Moves(self.catalog)
        self.states = BackendStates(folder)

    def mover(self, bytes_per_s: float = 0) -> Mover:
        """Return a mover with a limit on its rate."""
        return Mover(self.store, self.moves, Pace(bytes_per_s), wall.now_ms)


@contextmanager
def opened_namespace(
    folder: Path, tiers: Path | None = None, *, moves: bool = False
) -> Generator[Namespace]:
    """Open a folder; with `moves`, alone among those that move objects."""
    tier_file = tiers or folder / TIER_FILE
    if not tier_file.exists():
        raise InputError(
            "no-object-store",
            f"there is no tier file `{tier_file}`",
            "give the folder that `tenfold objects serve --dir` uses",
        )
    if not moves:
        namespace = Namespace(folder, tier_file)
        try:
            yield namespace
        finally:
            namespace.catalog.close()
        return
    with mover_lock(folder), opened_namespace(folder, tiers) as namespace:
        yield namespace
