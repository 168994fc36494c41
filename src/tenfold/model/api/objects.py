"""Access keys of the object store, and what teams store: over HTTP, in files and on the screen."""

from typing import Annotated

from msgspec import Meta, Struct

from tenfold.model.strings import FolderName

MOST = 2**53
"""JSON numbers are exact up to here: 9 PB of quota in bytes."""


class CreateAccessKey(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The access key to create."""

    name: FolderName
    """Name of the key's user."""
    team: FolderName | None = None
    """Whose buckets it can use; the token's team by default."""
    read_only: bool = False
    """Whether requests that change anything are refused."""


class AccessKey(Struct, frozen=True, kw_only=True):
    """An access key without its secret."""

    access_key_id: str
    name: str
    team: str
    state: str
    """`active`, `read-only`, `revoked` or `expired`."""
    created_at: str | None
    expires_at: str | None
    """When the token that created it expires; None if it does not depend on one."""


class NewAccessKey(AccessKey, frozen=True, kw_only=True):
    """A new access key with its secret, which is shown only once."""

    secret_access_key: str


class AccessKeys(Struct, frozen=True, kw_only=True):
    """Access keys, oldest first."""

    keys: tuple[AccessKey, ...]


class StorageQuota(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a team may store; 0 is no limit."""

    stored_bytes: Annotated[int, Meta(ge=0, le=MOST)] = 0
    objects: Annotated[int, Meta(ge=0, le=MOST)] = 0
    """Old versions included."""


class TeamStorage(Struct, frozen=True, kw_only=True):
    """What a team stores, and what it may store; 0 is no limit."""

    team: str
    buckets: int
    objects: int
    """Old versions included."""
    stored_bytes: int
    quota_objects: int
    quota_bytes: int


class ObjectStore(Struct, frozen=True, kw_only=True):
    """The object store of a control plane."""

    is_on: bool
    """Whether `tenfold up` was started with `--objects`."""
    url: str
    """Where it serves S3; empty while it does not."""
    teams: tuple[TeamStorage, ...]
    """Below `operator`, only your team."""
