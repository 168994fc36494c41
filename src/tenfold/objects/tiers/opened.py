"""Open the tiers of a tier file, and follow changes of it while the store is used."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from tenfold.files.tiers import read_tiers
from tenfold.model.errors import InputError, Refused, TenfoldError, Unreachable
from tenfold.model.objects.tiers import BackendSpec, TierFile, TierSpec
from tenfold.objects.blobs.backend import Backend, DirectoryBackend, Found, ShardWriting
from tenfold.objects.blobs.layout import Coding, erasure_coded, replicated
from tenfold.objects.blobs.object_store import ObjectStoreBackend, open_object_store
from tenfold.objects.blobs.store import BlobStore, Configured
from tenfold.objects.blobs.tier import Slot, Tier
from tenfold.objects.tiers.backend_states import (
    BackendState,
    BackendStates,
    new_identity,
    stamp_of,
)


class _Identity(msgspec.Struct, frozen=True):
    name: str
    identity: str


TIER_FILE = "tiers.toml"
_FIRST_FILE = """\
# Storage tiers. Add backends and tiers here; before one is removed, drain it.
[tiers.hot]
replicas = 1

[[tiers.hot.backends]]
name = "hot0"
directory = "blobs"
"""


def open_folder(folder: Path) -> BlobStore:
    """Return the store of an object store's folder, by its `tiers.toml`.

    Without that file, one is written: the tier `hot` on one directory in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tier_file = folder / TIER_FILE
    if not tier_file.exists():
        # Several processes may start at once: the file appears whole, and only once.
        partial = folder / f".{TIER_FILE}.{os.getpid()}"
        partial.write_text(_FIRST_FILE, encoding="utf-8")
        with suppress(FileExistsError):
            os.link(partial, tier_file)
        partial.unlink()
    return open_blob_store(tier_file, folder)


def open_blob_store(tier_file: Path, state_folder: Path) -> BlobStore:
    """Return a store on the tiers of a file; it follows changes of the file and of drains."""
    followed = _Followed(tier_file, BackendStates(state_folder))
    now = followed.opened()
    store = BlobStore(now.tiers, followed.changed)
    store.configure(now.tiers, now.forwards)
    return store


class _Followed:
    """A tier file and the states of its backends, read again when either changes."""

    def __init__(self, tier_file: Path, states: BackendStates) -> None:
        self._tier_file = tier_file
        self._states = states
        self._backends: dict[bytes, Backend] = {}
        self._stamps: tuple[tuple[int, int], tuple[int, int]] | None = None

    def opened(self) -> Configured:
        """Return the tiers as they are now."""
        self._stamps = (stamp_of(self._tier_file), self._states.stamp())
        file = read_tiers(self._tier_file)
        refuse_lost_backends(file, self._states.read())
        tiers: list[Tier] = []
        for name, spec in file.ordered():
            slots = tuple(self._slot(name, one) for one in spec.backends)
            tiers.append(Tier(name, coding_of(spec), slots))
        return Configured(tiers, forwards_of(self._states.read()))

    def changed(self) -> Configured | None:
        """Return the tiers if something changed; a file with an error changes nothing."""
        if self._stamps == (stamp_of(self._tier_file), self._states.stamp()):
            return None
        try:
            return self.opened()
        except TenfoldError:
            return None

    def _slot(self, tier: str, spec: BackendSpec) -> Slot:
        key = msgspec.json.encode([tier, msgspec.structs.replace(spec, weight=1.0, domain=None)])
        if isinstance(self._backends.get(key), AbsentBackend) or key not in self._backends:
            self._backends[key] = prepared(backend_of(spec), tier, self._states)
        use = self._states.read()[spec.name].use
        backend = self._backends[key]
        return Slot(backend, spec.failure_domain, spec.weight, accepting=use == "active")


def backend_of(spec: BackendSpec) -> Backend:
    """Return the backend that a specification describes; `$NAME` in options is the environment."""
    if spec.directory is not None:
        return DirectoryBackend(spec.name, Path(spec.directory))
    assert spec.url is not None
    options = {key: _expanded(spec.name, key, value) for key, value in spec.options.items()}
    return ObjectStoreBackend(spec.name, open_object_store(spec.url, options))


def coding_of(spec: TierSpec) -> Coding:
    """Return how blobs of a tier are divided."""
    if spec.erasure is not None:
        return erasure_coded(spec.data_shards, spec.parity_shards)
    return replicated(spec.shards)


def prepared(backend: Backend, tier: str, states: BackendStates) -> Backend:
    """Return the backend, marked as ours; one that lost its mark is returned as absent.

    The first use of a backend marks it. Later an unmarked directory is a disk that is not mounted.
    """
    known = states.read().get(backend.name)
    try:
        marked = _identity_of(backend)
    except OSError as error:
        if known is None:
            raise Unreachable(
                "backend-unreachable",
                f"backend `{backend.name}` cannot be used: {error}",
                "check its `directory` or `url` in the tier file",
            ) from error
        return backend
    if known is None:
        _adopt(backend, marked, tier, states)
        return backend
    if marked is not None and marked.identity == known.identity:
        return backend
    problem = "it has no marker" if marked is None else f"its marker says `{marked.name}`"
    return AbsentBackend(backend, f"not the backend that was used before: {problem}")


def new_mark(name: str) -> tuple[bytes, str]:
    """Return the mark of a backend that is used for the first time, and its identity."""
    identity = new_identity()
    return msgspec.json.encode(_Identity(name, identity)), identity


def refuse_lost_backends(file: TierFile, states: Mapping[str, BackendState]) -> None:
    """Raise if a backend left the file, or its tier, before it was drained."""
    tiers = {one.name: name for name, spec in file.ordered() for one in spec.backends}
    for name, state in sorted(states.items()):
        if state.use != "drained" and tiers.get(name) != state.tier:
            now = f"is in tier `{tiers[name]}` now" if name in tiers else "is not in the file"
            raise Refused(
                "backend-in-use",
                f"backend `{name}` of tier `{state.tier}` {now}, but it was not drained",
                f"put it back and run `tenfold objects drain {name}` first",
            )


def forwards_of(states: Mapping[str, BackendState]) -> dict[str, str]:
    """Return which tier takes the new blobs of each tier that is or was drained as a whole."""
    uses: dict[str, list[BackendState]] = {}
    for _, state in sorted(states.items()):
        uses.setdefault(state.tier, []).append(state)
    return {
        tier: members[0].to
        for tier, members in uses.items()
        if all(one.use != "active" and one.to == members[0].to for one in members) and members[0].to
    }


class AbsentBackend:
    """A backend that cannot be used now; every call says why.

    `present` is what is in its place.
    """

    local = False

    def __init__(self, present: Backend, problem: str) -> None:
        self.name = present.name
        self.present = present
        self.problem = problem

    def create(self, shard: str) -> ShardWriting:
        """Raise."""
        raise self._error(shard)

    def open(self, shard: str) -> int:
        """Raise."""
        raise self._error(shard)

    def read(self, shard: str, start: int, end: int) -> bytes:
        """Raise."""
        del start, end
        raise self._error(shard)

    def tail(self, shard: str, count: int) -> bytes:
        """Raise."""
        del count
        raise self._error(shard)

    def delete(self, shard: str) -> None:
        """Raise."""
        raise self._error(shard)

    def identity(self) -> bytes | None:
        """Raise."""
        raise self._error("its mark")

    def identify(self, identity: bytes) -> None:
        """Raise."""
        del identity
        raise self._error("its mark")

    def put_note(self, name: str, data: bytes) -> None:
        """Raise."""
        del data
        raise self._error(name)

    def get_note(self, name: str) -> bytes | None:
        """Raise."""
        raise self._error(name)

    def walk(self) -> Iterator[Found]:
        """Raise."""
        raise self._error("its shards")

    def partials(self, since_ms: int) -> int:
        """Raise."""
        del since_ms
        raise self._error("its partial files")

    def remove_partial(self, before_ms: int) -> int:
        """Raise."""
        del before_ms
        raise self._error("its partial files")

    def _error(self, what: str) -> OSError:
        return OSError(f"{what}: {self.problem}")


def _identity_of(backend: Backend) -> _Identity | None:
    marked = backend.identity()
    try:
        return None if marked is None else msgspec.json.decode(marked, type=_Identity)
    except msgspec.MsgspecError as error:
        raise OSError("its marker cannot be read") from error


def _adopt(backend: Backend, marked: _Identity | None, tier: str, states: BackendStates) -> None:
    """Record a backend that is new here, after marking it if nobody has."""
    if marked is not None and marked.name != backend.name:
        raise Refused(
            "backend-in-use",
            f"backend `{backend.name}` is marked as `{marked.name}`",
            f"name it `{marked.name}` in the tier file, or use an empty location",
        )
    with states.changing() as all_states:
        if backend.name in all_states:
            return
        if marked is not None:
            identity = marked.identity
        else:
            mark, identity = new_mark(backend.name)
            backend.identify(mark)
        all_states[backend.name] = BackendState(identity, tier)


def _expanded(backend: str, key: str, value: str) -> str:
    if not value.startswith("$"):
        return value
    found = os.environ.get(value[1:])
    if found is None:
        raise InputError(
            "variable-missing",
            f"option `{key}` of backend `{backend}` is `{value}`, which is not set",
            f"set the environment variable `{value[1:]}`",
        )
    return found
