"""Calls of the model registry, for both clients."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tenfold.client.calls import Call, delete, get, path_quoted, post
from tenfold.model.api.models import (
    Model,
    Models,
    ModelSummary,
    ModelVersion,
    VersionNumber,
)
from tenfold.model.registry import Stage, model_reference

Answer = TypeVar("Answer")


class ModelOperations(ABC):
    """Register, show and move versions of models; a part of `Operations`."""

    @abstractmethod
    async def _call(self, call: Call[Answer]) -> Answer: ...

    async def models(self, *, team: str | None = None) -> tuple[ModelSummary, ...]:
        """Return the registered models, by name."""
        return (await self._call(get("/models", Models, team=team))).models

    async def model(self, name: str, *, team: str | None = None) -> Model:
        """Return a model with its versions, aliases and changes."""
        return await self._call(get(_model(name), Model, team=team))

    async def model_version(self, reference: str, *, team: str | None = None) -> ModelVersion:
        """Return the version that `name`, `name@3` or `name@alias` names now."""
        named = model_reference(reference)
        path = f"{_model(named.model)}/versions/{path_quoted(named.version)}"
        return await self._call(get(path, ModelVersion, team=team))

    async def register_model(  # noqa: PLR0913 - each is a part of a version
        self,
        name: str,
        artefact: Mapping[str, Any],
        *,
        variants: Sequence[Mapping[str, Any]] = (),
        lineage: Mapping[str, Any] | None = None,
        metrics: Mapping[str, float] | None = None,
        note: str = "",
        team: str | None = None,
    ) -> VersionNumber:
        """Register a version of a model; the same content again is the same version.

        `artefact` has `location`, `kind`, `digest`, `size_bytes` and `files`.
        """
        body = {
            "artefact": artefact,
            "variants": list(variants),
            "lineage": lineage or {},
            "metrics": metrics or {},
            "note": note,
            "team": team,
        }
        return await self._call(post(f"{_model(name)}/versions", VersionNumber, body))

    async def move_model_alias(
        self, name: str, alias: str, version: str | int | None, *, team: str | None = None
    ) -> VersionNumber:
        """Let an alias name a version, or delete it if `version` is None."""
        named = None if version is None else str(version)
        body = {"alias": alias, "version": named, "team": team}
        return await self._call(post(f"{_model(name)}/aliases", VersionNumber, body))

    async def stage_model(
        self, name: str, version: str | int, stage: Stage, *, team: str | None = None
    ) -> VersionNumber:
        """Set the stage of a version."""
        body = {"version": str(version), "stage": stage, "team": team}
        return await self._call(post(f"{_model(name)}/stages", VersionNumber, body))

    async def remove_model_version(
        self, name: str, version: int, *, team: str | None = None
    ) -> VersionNumber:
        """Remove a version that no alias names; its files stay where they are."""
        path = f"{_model(name)}/versions/{version}"
        return await self._call(delete(path, VersionNumber, team=team))


def _model(name: str) -> str:
    return f"/models/{path_quoted(name)}"
