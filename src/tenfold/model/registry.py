"""The model registry: versions that never change, and aliases and stages that move.

A version is what was trained: where its artefact is, the digest of that, what it came from and how
good it is. Names belong to a team, so two teams may both have a `chat`.
"""

import re
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from tenfold.model.errors import InputError
from tenfold.model.ids import TeamId
from tenfold.model.strings import CONTROL, END, FolderName, Line

LATEST = "latest"
"""The alias of the newest version; it cannot be moved."""
ALIAS = rf"^(?![0-9]+{END})(?!{LATEST}{END})[A-Za-z0-9][A-Za-z0-9._-]*{END}"
LOCATION = rf"^(?:/|[a-z][a-z0-9+.-]*://)[^{CONTROL}]*{END}"
VERSION_MAX = 1_000_000_000
VERSIONS_MAX = 10_000
"""Versions of one model, removed ones included."""
MODELS_MAX = 10_000
"""Models of one team."""
ALIASES_MAX = 200
"""Aliases of one model."""

Alias = Annotated[str, Meta(min_length=1, max_length=80, pattern=ALIAS)]
"""Not a number, which would name a version."""
Location = Annotated[str, Meta(min_length=1, max_length=4_096, pattern=LOCATION)]
"""An absolute path, or a URI."""
Sha256 = Annotated[str, Meta(pattern=rf"^[0-9a-f]{{64}}{END}")]
Size = Annotated[int, Meta(ge=0, le=1 << 60)]
Version = Annotated[int, Meta(ge=1, le=VERSION_MAX)]
Stage = Literal["development", "staging", "production", "archived"]
STAGES: tuple[Stage, ...] = get_args(Stage)
ArtefactKind = Literal["file", "folder", "uri"]
_REFERENCE = re.compile(
    r"(?P<model>[A-Za-z0-9][A-Za-z0-9._-]{0,79})"
    r"(?:@(?P<version>[A-Za-z0-9][A-Za-z0-9._-]{0,79}))?"
    r"(?::(?P<variant>[A-Za-z0-9][A-Za-z0-9._-]{0,79}))?"
)


class Artefact(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The files of a version, by location and content."""

    location: Location
    kind: ArtefactKind
    digest: Sha256
    """SHA-256 of a file, or of the list of a folder's files in the format of `sha256sum`."""
    size_bytes: Size = 0
    files: Size = 1


class Variant(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Another artefact of the same version, usually of lower precision."""

    name: FolderName
    """Its precision, as `int8` or `awq-4bit`."""
    artefact: Artefact


class Lineage(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What a version came from, as far as that is known."""

    dataset: Line = ""
    """Digest or name of the training data."""
    code: Line = ""
    """Revision of the training code."""
    has_local_changes: bool = False
    """Whether the code had changes that were not committed."""
    job: Line = ""
    """The job of this control plane that made it."""
    parent: Line = ""
    """The version that it was trained or quantised from, as `name@3`."""


Metrics = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=80, pattern=rf"^[^={CONTROL}]+{END}")], float
    ],
    Meta(max_length=200),
]


class ModelVersion(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """One version of a model. Nothing of it ever changes."""

    team: TeamId
    model: FolderName
    number: Version
    artefact: Artefact
    variants: tuple[Variant, ...] = ()
    lineage: Lineage = Lineage()
    metrics: dict[str, float] = {}
    note: str = ""
    by: str = ""
    """The user who registered it."""


class ModelReference(Struct, frozen=True, kw_only=True):
    """A version as users name it: `chat`, `chat@3`, `chat@prod`, `chat@prod:int8`."""

    model: str
    version: str = LATEST
    """A number, an alias or `latest`."""
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.model}@{self.version}" + (f":{self.variant}" if self.variant else "")


def model_reference(text: str) -> ModelReference:
    """Return a reference as it was typed; raise if it is none."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise InputError(
            "bad-model-reference",
            f"`{text[:200]}` is not a model or version name",
            "write `name`, `name@3`, `name@alias` or `name@alias:variant`; names have letters, "
            "digits, `.`, `_` and `-`",
        )
    return ModelReference(
        model=found["model"], version=found["version"] or LATEST, variant=found["variant"] or ""
    )


def version_id(team: str, model: str, number: int) -> str:
    """Return the key of a version; `@` and `/` occur in no name."""
    return f"{team}/{model}@{number}"


def alias_id(team: str, model: str, alias: str) -> str:
    """Return the key of an alias."""
    return f"{team}/{model}@{alias}"
