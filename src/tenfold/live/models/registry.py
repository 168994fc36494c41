"""The model registry as the loop sees it: what is registered, and which changes are allowed.

All of it is in the journal, so a restarted control plane reads it from there. A refused change
makes no event; an allowed one is noted here at once, so that the next request sees it.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenfold.live.inbox import Answer, MoveAlias, RegisterModel, RemoveVersion, StageVersion
from tenfold.model.events import (
    ModelAliasMoved,
    ModelEvent,
    ModelRegistered,
    ModelStaged,
    ModelVersionRemoved,
)
from tenfold.model.reason import Reason
from tenfold.model.registry import (
    ALIASES_MAX,
    MODELS_MAX,
    STAGES,
    VERSIONS_MAX,
    ModelVersion,
    Stage,
    model_reference,
)
from tenfold.model.units import Millis

ModelRequest = RegisterModel | MoveAlias | StageVersion | RemoveVersion


class VersionEntry(Struct):
    """One version: what tells it from others, and what may change about it."""

    content: bytes
    """A digest of the version as it was registered."""
    stage: Stage = STAGES[0]
    is_removed: bool = False


class ModelEntry(Struct):
    """One model of a team."""

    versions: dict[int, VersionEntry] = {}
    aliases: dict[str, int] = {}


class ModelRegistry:
    """Models by team and name."""

    def __init__(
        self,
        versions: Iterable[tuple[ModelVersion, Stage, bool]] = (),
        aliases: Iterable[tuple[str, str, str, int]] = (),
    ) -> None:
        """`versions` come with their stage and whether they were removed."""
        self._models: dict[tuple[str, str], ModelEntry] = {}
        self._models_of: dict[str, int] = {}
        for version, stage, is_removed in versions:
            entry = self._admit(version)
            entry.stage, entry.is_removed = stage, is_removed
        for team, model, alias, number in aliases:
            if number:
                self._models[team, model].aliases[alias] = number

    def change(self, request: ModelRequest, now_ms: Millis) -> tuple[Answer, Sequence[ModelEvent]]:
        """Return the answer to a request, and the events that it makes."""
        if isinstance(request, RegisterModel):
            return self._register(request.version, now_ms)
        model = self._models.get((request.team, request.model))
        if model is None:
            return _refused(Reason("no-such-model", {"name": request.model}))
        if isinstance(request, MoveAlias):
            return self._move(request, model, now_ms)
        entry = model.versions.get(request.number)
        if entry is None or (entry.is_removed and isinstance(request, StageVersion)):
            return _no_version(request.model, request.number)
        if isinstance(request, StageVersion):
            return _stage(request, entry, now_ms)
        return _remove(request, model, entry, now_ms)

    def _register(
        self, version: ModelVersion, now_ms: Millis
    ) -> tuple[Answer, Sequence[ModelEvent]]:
        key = (version.team, version.model)
        model = self._models.get(key)
        if model is None and self._models_of.get(version.team, 0) >= MODELS_MAX:
            return _refused(Reason("too-many-models", {"most": MODELS_MAX}))
        known = model or ModelEntry()
        content = _content(version)
        for number, entry in known.versions.items():
            if entry.content == content and not entry.is_removed:
                # A request that is repeated after a lost answer makes no second version.
                return Answer(number=number, again=True), ()
        if len(known.versions) >= VERSIONS_MAX:
            return _refused(
                Reason("too-many-versions", {"name": version.model, "most": VERSIONS_MAX})
            )
        if (reason := self._parent_fault(version)) is not None:
            return _refused(reason)
        numbered = replace(version, number=max(known.versions, default=0) + 1)
        self._admit(numbered)
        return Answer(number=numbered.number), (ModelRegistered(now_ms, numbered),)

    def _parent_fault(self, version: ModelVersion) -> Reason | None:
        """Return why a parent is none: it must be a version of the same team, by number."""
        if not version.lineage.parent:
            return None
        parent = model_reference(version.lineage.parent)
        model = self._models.get((version.team, parent.model))
        number = int(parent.version) if parent.version.isdecimal() else 0
        if model is None or number not in model.versions:
            return Reason("no-such-parent", {"name": version.lineage.parent})
        return None

    def _move(
        self, request: MoveAlias, model: ModelEntry, now_ms: Millis
    ) -> tuple[Answer, Sequence[ModelEvent]]:
        before = model.aliases.get(request.alias, 0)
        if request.number:
            entry = model.versions.get(request.number)
            if entry is None or entry.is_removed:
                return _no_version(request.model, request.number)
            if not before and len(model.aliases) >= ALIASES_MAX:
                return _refused(
                    Reason("too-many-aliases", {"name": request.model, "most": ALIASES_MAX})
                )
            model.aliases[request.alias] = request.number
        elif before:
            del model.aliases[request.alias]
        else:
            return _refused(
                Reason("no-such-alias", {"name": request.model, "alias": request.alias})
            )
        if before == request.number:
            return Answer(number=request.number, again=True), ()
        event = ModelAliasMoved(
            now_ms,
            request.team,
            request.model,
            request.alias,
            request.number,
            before,
            request.by,
        )
        return Answer(number=request.number), (event,)

    def _admit(self, version: ModelVersion) -> VersionEntry:
        key = (version.team, version.model)
        model = self._models.get(key)
        if model is None:
            model = self._models[key] = ModelEntry()
            self._models_of[version.team] = self._models_of.get(version.team, 0) + 1
        entry = VersionEntry(_content(version))
        model.versions[version.number] = entry
        return entry


def _stage(
    request: StageVersion, entry: VersionEntry, now_ms: Millis
) -> tuple[Answer, Sequence[ModelEvent]]:
    before, entry.stage = entry.stage, request.stage
    if before == request.stage:
        return Answer(number=request.number, again=True), ()
    event = ModelStaged(
        now_ms, request.team, request.model, request.number, request.stage, before, request.by
    )
    return Answer(number=request.number), (event,)


def _remove(
    request: RemoveVersion, model: ModelEntry, entry: VersionEntry, now_ms: Millis
) -> tuple[Answer, Sequence[ModelEvent]]:
    if entry.is_removed:
        return Answer(number=request.number, again=True), ()
    names = sorted(name for name, number in model.aliases.items() if number == request.number)
    if names:
        return _refused(
            Reason(
                "version-has-alias",
                {"name": request.model, "number": request.number, "alias": names[0]},
            )
        )
    entry.is_removed = True
    event = ModelVersionRemoved(now_ms, request.team, request.model, request.number, request.by)
    return Answer(number=request.number), (event,)


def _content(version: ModelVersion) -> bytes:
    """Return a digest of a version, whatever its number and whoever registered it."""
    plain = replace(version, number=1, by="")
    return sha256(msgspec.json.encode(plain, order="deterministic")).digest()


def _no_version(model: str, number: int) -> tuple[Answer, Sequence[ModelEvent]]:
    return _refused(Reason("no-such-version", {"name": model, "number": number}))


def _refused(reason: Reason) -> tuple[Answer, Sequence[ModelEvent]]:
    return Answer(refused=reason), ()
