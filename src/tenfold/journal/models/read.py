"""Read the model registry: the models of a team, the versions of a model, and its history."""

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import select

from tenfold.journal.models.rows import (
    ModelAliasRow,
    ModelChangeRow,
    ModelVersionRow,
    alias_row,
    version_row,
)
from tenfold.journal.store import Store
from tenfold.journal.tables import MODEL_ALIASES, MODEL_CHANGES, MODEL_VERSIONS
from tenfold.model.registry import LATEST

CHANGES_MAX = 1_000
"""Changes of a model that are read, newest first."""


class ModelRecord(Struct, frozen=True, kw_only=True):
    """A model: its versions, oldest first, and its aliases."""

    team: str
    model: str
    versions: tuple[ModelVersionRow, ...]
    aliases: tuple[ModelAliasRow, ...]

    @property
    def usable(self) -> Sequence[ModelVersionRow]:
        """The versions that were not removed, oldest first."""
        return [row for row in self.versions if row.removed_ms is None]

    def version(self, text: str) -> ModelVersionRow | None:
        """Return the version with a number or alias, or the newest; None if there is none."""
        if text == LATEST:
            return self.usable[-1] if self.usable else None
        alias = next((row for row in self.aliases if row.alias == text and row.number), None)
        number = alias.number if alias is not None else int(text) if text.isdecimal() else 0
        return next((row for row in self.versions if row.number == number), None)

    def aliases_of(self, number: int) -> tuple[str, ...]:
        """Return the aliases of a version."""
        return tuple(sorted(row.alias for row in self.aliases if row.number == number))


def models(store: Store, team: str | None = None) -> list[ModelRecord]:
    """Return the models of a team, or of all teams, by name."""
    return _models(store, team, None)


def model(store: Store, team: str, name: str) -> ModelRecord | None:
    """Return one model of a team; None if it has no version."""
    return next(iter(_models(store, team, name)), None)


def teams_with(store: Store, name: str) -> list[str]:
    """Return the teams that have a model of this name."""
    query = select(MODEL_VERSIONS.c.team).where(MODEL_VERSIONS.c.model == name).distinct()
    with store.reading() as connection:
        return sorted(connection.execute(query).scalars())


def changes(store: Store, team: str, name: str, most: int = CHANGES_MAX) -> list[ModelChangeRow]:
    """Return the latest changes of a model, newest first."""
    table = MODEL_CHANGES
    query = select(table).where(table.c.team == team, table.c.model == name)
    with store.reading() as connection:
        rows = connection.execute(query.order_by(table.c.seq.desc()).limit(most)).mappings()
        return [ModelChangeRow(**row) for row in rows]


def _models(store: Store, team: str | None, name: str | None) -> list[ModelRecord]:
    versions, aliases = select(MODEL_VERSIONS), select(MODEL_ALIASES)
    if team is not None:
        versions = versions.where(MODEL_VERSIONS.c.team == team)
        aliases = aliases.where(MODEL_ALIASES.c.team == team)
    if name is not None:
        versions = versions.where(MODEL_VERSIONS.c.model == name)
        aliases = aliases.where(MODEL_ALIASES.c.model == name)
    order = (MODEL_VERSIONS.c.model, MODEL_VERSIONS.c.team, MODEL_VERSIONS.c.number)
    found: dict[tuple[str, str], tuple[list[ModelVersionRow], list[ModelAliasRow]]] = {}
    with store.reading() as connection:
        for row in connection.execute(versions.order_by(*order)).mappings():
            found.setdefault((row["team"], row["model"]), ([], []))[0].append(version_row(row))
        by_name = aliases.order_by(MODEL_ALIASES.c.alias)
        for row in connection.execute(by_name).mappings():
            found.setdefault((row["team"], row["model"]), ([], []))[1].append(alias_row(row))
    return [
        ModelRecord(team=key[0], model=key[1], versions=tuple(rows), aliases=tuple(names))
        for key, (rows, names) in found.items()
        if rows
    ]
