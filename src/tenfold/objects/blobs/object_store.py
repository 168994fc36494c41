"""Shards as objects of a store that speaks S3, or of Azure or Google, through obstore.

The store's own promise stands for durability: an upload that was answered is durable.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from tenfold.model.errors import InputError
from tenfold.objects.blobs.backend import Found
from tenfold.objects.blobs.refs import Bytes
from tenfold.objects.blobs.trailer import DamagedShard

_IDENTITY = "backend.json"
_PART_BYTES = 8 << 20
_RETRIES = 3
_TIMEOUT_S = 30


class ObjectStoreBackend:
    """A bucket of an object store, below a prefix."""

    local = False

    def __init__(self, name: str, store: Any) -> None:
        self.name = name
        self._store = store

    def identity(self) -> bytes | None:
        """Return what `identify` stored."""
        try:
            with _as_os_errors():
                return bytes(_obstore().get(self._store, _IDENTITY).bytes())
        except FileNotFoundError:
            return None

    def identify(self, identity: bytes) -> None:
        """Mark the prefix."""
        with _as_os_errors():
            _obstore().put(self._store, _IDENTITY, identity)

    def create(self, shard: str) -> "_Upload":
        """Start a shard."""
        return _Upload(self._store, _path("shards", shard))

    def open(self, shard: str) -> int:
        """Raise: there is no file."""
        raise OSError(f"`{shard}` is not a local file")

    def read(self, shard: str, start: int, end: int) -> bytes:
        """Return bytes of a shard."""
        if end <= start:
            return b""
        with _as_os_errors():
            return bytes(
                _obstore().get_range(self._store, _path("shards", shard), start=start, end=end)
            )

    def tail(self, shard: str, count: int) -> bytes:
        """Return the last bytes of a shard."""
        with _as_os_errors():
            options = {"range": {"suffix": count}}
            return bytes(
                _obstore().get(self._store, _path("shards", shard), options=options).bytes()
            )

    def delete(self, shard: str) -> None:
        """Remove a shard and its note."""
        for folder in ("notes", "shards"):
            try:
                with _as_os_errors():
                    _obstore().delete(self._store, _path(folder, shard))
            except FileNotFoundError:
                continue

    def put_note(self, name: str, data: bytes) -> None:
        """Store a small document durably."""
        with _as_os_errors():
            _obstore().put(self._store, _path("notes", name), data)

    def get_note(self, name: str) -> bytes | None:
        """Return a small document."""
        try:
            with _as_os_errors():
                return bytes(_obstore().get(self._store, _path("notes", name)).bytes())
        except FileNotFoundError:
            return None

    def walk(self) -> Iterator[Found]:
        """Yield every shard, in the order of names."""
        with _as_os_errors():
            for page in _obstore().list(self._store, prefix="shards"):
                for entry in page:
                    changed_ms = int(entry["last_modified"].timestamp() * 1000)
                    yield Found(entry["path"].rpartition("/")[2], entry["size"], changed_ms)

    def partials(self, since_ms: int) -> int:
        """Return 0: the store does not list uploads that were not completed."""
        del since_ms
        return 0

    def remove_partial(self, before_ms: int) -> int:
        """Return 0: the store itself expires uploads that were not completed."""
        del before_ms
        return 0


class _Upload:
    """An upload; the store shows the object when it is complete."""

    def __init__(self, store: Any, path: str) -> None:
        with _as_os_errors():
            self._writer = _obstore().open_writer(store, path, buffer_size=_PART_BYTES)

    def write(self, data: Bytes) -> None:
        """Append bytes."""
        with _as_os_errors():
            self._writer.write(data)

    def commit(self) -> None:
        """Complete the upload."""
        with _as_os_errors():
            self._writer.close()

    def abort(self) -> None:
        """Leave the upload incomplete."""


def open_object_store(url: str, options: dict[str, str]) -> Any:
    """Return the store of a URL such as `s3://bucket/prefix`, with obstore's options."""
    _obstore()
    from obstore.store import from_url  # noqa: PLC0415 - Only such backends need it.

    make: Any = from_url
    timeout = timedelta(seconds=_TIMEOUT_S)
    try:
        return make(
            url,
            config=options,
            client_options={"timeout": timeout, "allow_http": True},
            retry_config={"max_retries": _RETRIES, "retry_timeout": timeout},
        )
    except Exception as error:
        raise InputError(
            "backend-unusable",
            f"the object store {url} cannot be used: {error}",
            "check its `url` and `options` in the tier file",
        ) from error


def _path(folder: str, shard: str) -> str:
    return f"{folder}/{shard[:2]}/{shard}"


def _obstore() -> Any:
    try:
        import obstore  # noqa: PLC0415 - Only such backends need it.
    except ImportError as error:
        raise InputError(
            "objects-extra-missing",
            "a backend with a `url` needs the package obstore",
            "install it with `pip install 'tenfold[objects]'`",
        ) from error
    return obstore


@contextmanager
def _as_os_errors() -> Generator[None]:
    from obstore.exceptions import BaseError  # noqa: PLC0415 - As above.

    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise OSError("the bucket does not exist") from error
        raise FileNotFoundError("no such shard") from error
    except BaseError as error:
        if "416 Range Not Satisfiable" in str(error):
            raise DamagedShard("the object is too short") from error
        raise OSError(str(error).partition("\n")[0]) from error
