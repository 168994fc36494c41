"""Rows of the model registry, and how its events change them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import RowMapping, Table

from tenfold.journal.tables import MODEL_ALIASES, MODEL_CHANGES, MODEL_VERSIONS
from tenfold.model.events import (
    Event,
    ModelAliasMoved,
    ModelEvent,
    ModelRegistered,
    ModelStaged,
    ModelVersionRemoved,
)
from tenfold.model.registry import STAGES, ModelVersion, Stage, alias_id, version_id


class ModelVersionRow(Struct, frozen=True, kw_only=True):
    """A registered version, and what may change about it."""

    id: str
    seq: int
    """The event that registered it."""
    team: str
    model: str
    number: int
    stage: Stage
    registered_ms: int
    removed_ms: int | None = None
    body: ModelVersion
    """As it was registered."""


class ModelAliasRow(Struct, frozen=True, kw_only=True):
    """What an alias names."""

    id: str
    team: str
    model: str
    alias: str
    number: int
    """0 if the alias was deleted."""
    by_user: str
    changed_ms: int


class ModelChangeRow(Struct, frozen=True, kw_only=True):
    """One change: who did what to which version, and when."""

    seq: int
    at_ms: int
    team: str
    model: str
    kind: str
    """`registered`, `alias`, `stage` or `removed`."""
    what: str
    """The alias, or the stage."""
    number: int
    before: str
    """What the alias named, or the stage, before."""
    by_user: str


class ModelRows:
    """Rows of the registry while events are applied to them."""

    def __init__(
        self, versions: Sequence[ModelVersionRow] = (), aliases: Sequence[ModelAliasRow] = ()
    ) -> None:
        self.versions = {row.id: row for row in versions}
        self.aliases = {row.id: row for row in aliases}
        self.changes: list[ModelChangeRow] = []
        self._changed_versions: dict[str, None] = {}
        self._changed_aliases: dict[str, None] = {}

    def apply(self, seq: int, event: ModelEvent) -> None:
        """Apply one event; one about a version without a row changes nothing but the history."""
        if isinstance(event, ModelRegistered):
            self._registered(seq, event)
        elif isinstance(event, ModelAliasMoved):
            before = str(event.number_before or "")
            self._note(seq, event, "alias", event.alias, before)
            self._alias(event)
        elif isinstance(event, ModelStaged):
            self._note(seq, event, "stage", event.stage, event.stage_before)
            self._change(event, stage=event.stage)
        else:
            self._note(seq, event, "removed", "", "")
            self._change(event, removed_ms=event.at_ms)

    def changed(self) -> Sequence[tuple[Table, Sequence[object], Sequence[dict[str, Any]]]]:
        """Return the tables with their changed rows: keys, and values to write."""
        versions = [version_values(self.versions[one]) for one in self._changed_versions]
        aliases = [asdict(self.aliases[one]) for one in self._changed_aliases]
        changes = [asdict(one) for one in self.changes]
        return (
            (MODEL_VERSIONS, list(self._changed_versions), versions),
            (MODEL_ALIASES, list(self._changed_aliases), aliases),
            (MODEL_CHANGES, [one.seq for one in self.changes], changes),
        )

    def _registered(self, seq: int, event: ModelRegistered) -> None:
        version = event.version
        key = version_id(version.team, version.model, version.number)
        self.versions[key] = ModelVersionRow(
            id=key,
            seq=seq,
            team=version.team,
            model=version.model,
            number=version.number,
            stage=STAGES[0],
            registered_ms=event.at_ms,
            body=version,
        )
        self._changed_versions[key] = None
        self.changes.append(
            ModelChangeRow(
                seq=seq,
                at_ms=event.at_ms,
                team=version.team,
                model=version.model,
                kind="registered",
                what="",
                number=version.number,
                before="",
                by_user=version.by,
            )
        )

    def _alias(self, event: ModelAliasMoved) -> None:
        key = alias_id(event.team, event.model, event.alias)
        self.aliases[key] = ModelAliasRow(
            id=key,
            team=event.team,
            model=event.model,
            alias=event.alias,
            number=event.number,
            by_user=event.by,
            changed_ms=event.at_ms,
        )
        self._changed_aliases[key] = None

    def _change(self, event: ModelStaged | ModelVersionRemoved, **fields: object) -> None:
        key = version_id(event.team, event.model, event.number)
        row = self.versions.get(key)
        if row is not None:
            self.versions[key] = replace(row, **fields)
            self._changed_versions[key] = None

    def _note(
        self,
        seq: int,
        event: ModelAliasMoved | ModelStaged | ModelVersionRemoved,
        kind: str,
        what: str,
        before: str,
    ) -> None:
        self.changes.append(
            ModelChangeRow(
                seq=seq,
                at_ms=event.at_ms,
                team=event.team,
                model=event.model,
                kind=kind,
                what=what,
                number=event.number,
                before=before,
                by_user=event.by,
            )
        )


def rows_needed(events: Sequence[Event]) -> tuple[list[str], list[str]]:
    """Return the keys of the versions and aliases that events change."""
    versions: dict[str, None] = {}
    aliases: dict[str, None] = {}
    for event in events:
        if isinstance(event, ModelStaged | ModelVersionRemoved):
            versions[version_id(event.team, event.model, event.number)] = None
        elif isinstance(event, ModelRegistered):
            version = event.version
            versions[version_id(version.team, version.model, version.number)] = None
        elif isinstance(event, ModelAliasMoved):
            aliases[alias_id(event.team, event.model, event.alias)] = None
    return list(versions), list(aliases)


def version_row(row: RowMapping | Mapping[str, Any]) -> ModelVersionRow:
    """Return a row of the table of versions."""
    values: dict[str, Any] = dict(row)
    values["body"] = msgspec.json.decode(values["body"], type=ModelVersion)
    return ModelVersionRow(**values)


def version_values(row: ModelVersionRow) -> dict[str, Any]:
    """Return a row of the table of versions as it is stored."""
    return {**asdict(row), "body": msgspec.json.encode(row.body).decode()}


def alias_row(row: RowMapping | Mapping[str, Any]) -> ModelAliasRow:
    """Return a row of the table of aliases."""
    return ModelAliasRow(**dict(row))
