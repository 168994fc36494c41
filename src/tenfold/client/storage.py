"""Calls of the object store, for both clients."""

from abc import ABC, abstractmethod
from typing import TypeVar

from tenfold.client.calls import Call, delete, get, path_quoted, post
from tenfold.model.api.objects import (
    AccessKey,
    AccessKeys,
    CreateAccessKey,
    NewAccessKey,
    ObjectStore,
    StorageQuota,
)

Answer = TypeVar("Answer")


class StorageOperations(ABC):
    """Access keys and quotas of the object store; a part of `Operations`."""

    @abstractmethod
    async def _call(self, call: Call[Answer]) -> Answer: ...

    async def object_store(self) -> ObjectStore:
        """Return where the object store serves S3, and what teams store."""
        return await self._call(get("/objects", ObjectStore))

    async def access_keys(self) -> tuple[AccessKey, ...]:
        """Return the access keys of the token's team, without secrets; for operators, all."""
        return (await self._call(get("/objects/keys", AccessKeys))).keys

    async def create_access_key(
        self, name: str, *, team: str | None = None, read_only: bool = False
    ) -> NewAccessKey:
        """Create an access key; its secret is shown only in this response."""
        body = CreateAccessKey(name=name, team=team, read_only=read_only)
        return await self._call(post("/objects/keys", NewAccessKey, body))

    async def revoke_access_key(self, access_key_id: str) -> AccessKey:
        """Revoke an access key; the object store refuses it within a second."""
        return await self._call(delete(f"/objects/keys/{path_quoted(access_key_id)}", AccessKey))

    async def set_storage_quota(
        self, team: str, *, stored_bytes: int = 0, objects: int = 0
    ) -> StorageQuota:
        """Set what a team may store; 0 is no limit."""
        body = StorageQuota(stored_bytes=stored_bytes, objects=objects)
        return await self._call(post(f"/objects/quotas/{path_quoted(team)}", StorageQuota, body))
