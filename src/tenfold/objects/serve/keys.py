"""The file of access keys and teams: readable by its owner alone, since it holds the secrets.

A signature can only be checked with the secret itself, so a hash of it would not do.
"""

import base64
import fcntl
import os
import secrets
import string
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from tenfold.clock import wall
from tenfold.model.api import objects as api
from tenfold.model.errors import InputError, NoAnswer
from tenfold.objects.s3.auth.identity import AccessKey, Team
from tenfold.objects.s3.times import iso

MODE = 0o600
_ID_CHARACTERS = string.ascii_uppercase + "234567"
T = TypeVar("T")


class KeyFile(Struct, frozen=True, omit_defaults=True):
    """What the file holds."""

    keys: tuple[AccessKey, ...] = ()
    teams: tuple[Team, ...] = ()


_DECODER = msgspec.json.Decoder(KeyFile)


class KeyRing:
    """The keys and teams that are valid now; read again when the file changes."""

    def __init__(self, path: Path, now_ms: Callable[[], int] = wall.now_ms) -> None:
        self._path, self._now_ms = path, now_ms
        self._mark: tuple[int, int] | None = None
        self._keys: dict[str, AccessKey] = {}
        self._teams: dict[str, Team] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the file if it changed."""
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return
        mark = (state.st_mtime_ns, state.st_ino)
        if mark != self._mark:
            found = read_key_file(self._path)
            self._keys = {key.id: key for key in found.keys if not key.is_revoked}
            self._teams = {team.name: team for team in found.teams}
            self._mark = mark

    def key(self, key_id: str) -> AccessKey | None:
        """Return a key that is neither revoked nor expired."""
        found = self._keys.get(key_id)
        return None if found is None or has_expired(found, self._now_ms()) else found

    def team(self, name: str) -> Team | None:
        """Return a team by name."""
        known = self._teams.get(name)
        if known is None and any(key.team == name for key in self._keys.values()):
            return Team(name=name)
        return known

    def team_by_email(self, email: str) -> Team | None:
        """Return a team by its e-mail address."""
        return next((one for one in self._teams.values() if email and one.email == email), None)


def read_key_file(path: Path) -> KeyFile:
    """Read the file; others must not be able to read it."""
    state = path.stat()
    if state.st_mode & 0o077:
        raise InputError(
            "keys-exposed",
            f"other users can read the access keys in `{path}`",
            f"protect them: chmod 600 {path}",
            file=str(path),
        )
    try:
        return _DECODER.decode(path.read_bytes())
    except msgspec.DecodeError as error:
        raise InputError(
            "keys-unreadable", f"`{path}` is not an access key file: {error}", file=str(path)
        ) from None


def ensure_key_file(path: Path) -> None:
    """Create the file without a key, if there is none."""
    if not path.exists():
        _change(path, lambda found: (found, None))


def has_expired(key: AccessKey, now_ms: int) -> bool:
    """Tell whether the token that a key depends on has expired."""
    return 0 < key.expires_ms <= now_ms


def shown(key: AccessKey, now_ms: int) -> api.AccessKey:
    """Return what is shown of a key: everything but its secret."""
    state = "read-only" if key.is_read_only else "active"
    if has_expired(key, now_ms):
        state = "expired"
    return api.AccessKey(
        access_key_id=key.id,
        name=key.name,
        team=key.team,
        state="revoked" if key.is_revoked else state,
        created_at=iso(key.created_ms) if key.created_ms else None,
        expires_at=iso(key.expires_ms) if key.expires_ms else None,
    )


def shown_once(key: AccessKey, now_ms: int) -> api.NewAccessKey:
    """Return a new key with its secret."""
    fields = structs.asdict(shown(key, now_ms))
    return api.NewAccessKey(**fields, secret_access_key=key.secret)


def create_key(path: Path, key: AccessKey) -> AccessKey:
    """Add a key with a new id and secret."""
    made = structs.replace(key, id=_new_id(), secret=_new_secret())

    def change(found: KeyFile) -> tuple[KeyFile, AccessKey]:
        return structs.replace(found, keys=(*found.keys, made)), made

    return _change(path, change)


def revoke_key(path: Path, key_id: str) -> AccessKey:
    """Revoke a key; servers refuse it within a second."""

    def change(found: KeyFile) -> tuple[KeyFile, AccessKey]:
        known = next((one for one in found.keys if one.id == key_id), None)
        if known is None:
            raise NoAnswer(
                "key-unknown",
                f"there is no access key `{key_id}` in `{path}`",
                "`tenfold objects key list` shows them",
            )
        revoked = structs.replace(known, is_revoked=True)
        keys = tuple(revoked if one.id == key_id else one for one in found.keys)
        return structs.replace(found, keys=keys), revoked

    return _change(path, change)


def revoke_keys_of(path: Path, token: str) -> int:
    """Revoke the keys that depend on a token; return how many."""

    def change(found: KeyFile) -> tuple[KeyFile, int]:
        ended = [one for one in found.keys if one.token == token and not one.is_revoked]
        keys = tuple(
            structs.replace(one, is_revoked=True) if one in ended else one for one in found.keys
        )
        return structs.replace(found, keys=keys), len(ended)

    if not any(one.token == token and not one.is_revoked for one in read_key_file(path).keys):
        return 0
    return _change(path, change)


def set_quota(path: Path, team: str, quota: api.StorageQuota) -> Team:
    """Set what a team may store; the rest that is known of it stays."""

    def change(found: KeyFile) -> tuple[KeyFile, Team]:
        known = next((one for one in found.teams if one.name == team), Team(name=team))
        made = structs.replace(known, quota_bytes=quota.stored_bytes, quota_objects=quota.objects)
        others = tuple(one for one in found.teams if one.name != team)
        return structs.replace(found, teams=(*others, made)), made

    return _change(path, change)


def _change(path: Path, change: Callable[[KeyFile], tuple[KeyFile, T]]) -> T:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        found = read_key_file(path) if path.exists() else KeyFile()
        changed, result = change(found)
        partial = path.with_suffix(".partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
        try:
            os.write(descriptor, msgspec.json.format(msgspec.json.encode(changed)))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        partial.replace(path)
    return result


@contextmanager
def _locked(path: Path) -> Generator[None]:
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _new_id() -> str:
    return "TF" + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(18))


def _new_secret() -> str:
    return base64.b64encode(secrets.token_bytes(30)).decode()
