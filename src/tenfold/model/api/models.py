"""Models: register, list and show versions, and move aliases and stages."""

from typing import Annotated

from msgspec import Meta, Struct

from tenfold.model.registry import (
    Alias,
    Artefact,
    Lineage,
    Metrics,
    Stage,
    Variant,
)
from tenfold.model.strings import FolderName, Line


class NewVersion(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A version to register."""

    artefact: Artefact
    variants: Annotated[list[Variant], Meta(max_length=50)] = []
    lineage: Lineage = Lineage()
    metrics: Metrics = {}
    note: Line = ""
    team: FolderName | None = None
    """Default: the team of the token."""


class AliasChange(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An alias to move, or to delete if there is no version."""

    alias: Alias
    version: FolderName | None = None
    """A number, an alias or `latest`."""
    team: FolderName | None = None


class StageChange(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The stage that a version gets."""

    version: FolderName
    stage: Stage
    team: FolderName | None = None


class ModelVersion(Struct, frozen=True, kw_only=True):
    """A version as it was registered, and what may change about it."""

    team: str
    model: str
    version: int
    stage: Stage
    aliases: tuple[str, ...]
    artefact: Artefact
    variants: tuple[Variant, ...]
    lineage: Lineage
    metrics: dict[str, float]
    note: str
    registered_by: str
    registered_at: str | None
    removed_at: str | None = None


class ModelSummary(Struct, frozen=True, kw_only=True):
    """A model in a list."""

    team: str
    model: str
    versions: int
    """Those that were not removed."""
    latest: int | None
    aliases: dict[str, int]
    size_bytes: int
    """Of the latest version."""
    registered_at: str | None
    """When the latest version was registered."""


class Models(Struct, frozen=True, kw_only=True):
    """Models by name."""

    models: tuple[ModelSummary, ...]


class ModelChange(Struct, frozen=True, kw_only=True):
    """Who changed what."""

    at: str | None
    by: str
    kind: str
    """`registered`, `alias`, `stage` or `removed`."""
    what: str
    """The alias, or the stage."""
    version: int
    """0 if the alias was deleted."""
    before: str
    """The version that the alias named before, or the stage."""


class Model(Struct, frozen=True, kw_only=True):
    """A model with its versions, newest first, and its changes, newest first."""

    team: str
    model: str
    aliases: dict[str, int]
    versions: tuple[ModelVersion, ...]
    changes: tuple[ModelChange, ...]


class VersionNumber(Struct, frozen=True, kw_only=True):
    """The version that a request registered or changed."""

    team: str
    model: str
    version: int
    """0 if an alias was deleted."""
    changed: bool = True
    """False if nothing had to change, as when a request is repeated."""
