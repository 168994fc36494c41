"""Compare the files of a version with their digests."""

from pathlib import Path

from msgspec import Struct

from tenfold.cli.progress import progress
from tenfold.files.artefacts import difference, size_of
from tenfold.model.api.models import ModelVersion
from tenfold.model.errors import InputError
from tenfold.model.registry import Artefact


class Verified(Struct, frozen=True, kw_only=True):
    """One artefact and what is wrong with it."""

    variant: str
    """Empty for the version itself."""
    path: str
    digest: str
    problem: str
    """How the files differ; empty if they do not."""


def verified(version: ModelVersion, variant: str, path: Path | None) -> list[Verified]:
    """Return the result for each artefact of a version, or for one variant."""
    artefacts: dict[str, Artefact] = {"": version.artefact}
    artefacts.update({one.name: one.artefact for one in version.variants})
    named = f"{version.model}@{version.version}"
    if variant and variant not in artefacts:
        raise InputError(
            "no-such-variant",
            f"`{named}` has no variant `{variant}`",
            f"`tenfold model show {named}` lists them",
        )
    if variant or path is not None:
        artefacts = {variant: artefacts[variant]}
    return [_verified(name, one, path) for name, one in artefacts.items()]


def _verified(variant: str, artefact: Artefact, path: Path | None) -> Verified:
    if path is None and artefact.kind == "uri":
        raise InputError(
            "artefact-is-uri",
            f"`{artefact.location}` is a URI, which is not read",
            "download it, and verify the copy with --path",
        )
    at = path or Path(artefact.location)
    try:
        with progress(f"reading {at.name}", size_of(at)) as done:
            problem = difference(artefact, at, done)
    except InputError as error:
        problem = error.message
    return Verified(variant=variant, path=str(at), digest=artefact.digest, problem=problem)
