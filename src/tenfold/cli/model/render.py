"""Models and versions as tables and sentences for people."""

from collections.abc import Mapping, Sequence

from tenfold.cli.job.columns import minute_of
from tenfold.cli.model.verify import Verified
from tenfold.cli.output import show, table
from tenfold.model.api.models import Model, ModelChange, ModelSummary, ModelVersion
from tenfold.model.registry import Artefact, Lineage
from tenfold.report.figures import count, file_bytes

CHANGES_SHOWN = 10
METRICS_SHOWN = 3


def show_models(models: Sequence[ModelSummary]) -> None:
    """Print models, one a line."""
    if not models:
        show("no models; register one with `tenfold model register NAME PATH`")
        return
    rows = [
        (
            one.model,
            one.team,
            "-" if one.latest is None else str(one.latest),
            str(one.versions),
            _aliases(one.aliases),
            file_bytes(one.size_bytes),
            minute_of(one.registered_at or ""),
        )
        for one in models
    ]
    columns = ("model", "team", ">latest", ">versions", "aliases", ">size", "registered")
    show(table("", columns, rows))


def show_model(model: Model) -> None:
    """Print a model with its versions and latest changes."""
    show(f"{model.model} (team {model.team}): {count(len(model.versions), 'version')}")
    rows = [
        (
            str(one.version),
            "removed" if one.removed_at else one.stage,
            ", ".join(one.aliases),
            file_bytes(one.artefact.size_bytes),
            ", ".join(variant.name for variant in one.variants),
            _metrics(one.metrics),
            one.registered_by,
            minute_of(one.registered_at or ""),
        )
        for one in model.versions
    ]
    columns = (">version", "stage", "aliases", ">size", "variants", "metrics", "by", "registered")
    show(table("", columns, rows))
    for change in model.changes[:CHANGES_SHOWN]:
        show(_change(change))
    if len(model.changes) > CHANGES_SHOWN:
        show(f"and {len(model.changes) - CHANGES_SHOWN:,} earlier changes (--json has them)")


def show_version(version: ModelVersion) -> None:
    """Print one version with its files and lineage."""
    rows = [
        ("version", f"{version.model}@{version.version}, team {version.team}"),
        ("stage", "removed" if version.removed_at else version.stage),
        ("aliases", ", ".join(version.aliases)),
        ("artefact", _artefact(version.artefact)),
        ("sha256", version.artefact.digest),
        *(
            (f"variant {one.name}", f"{_artefact(one.artefact)}, sha256 {one.artefact.digest}")
            for one in version.variants
        ),
        *_lineage(version.lineage),
        *((name, f"{value:g}") for name, value in version.metrics.items()),
        ("note", version.note),
        ("registered", f"{minute_of(version.registered_at or '')} by {version.registered_by}"),
    ]
    show(table("", ("", ""), [row for row in rows if row[1]]))


def show_verified(version: ModelVersion, results: Sequence[Verified]) -> None:
    """Print whether the files of a version are what was registered."""
    for one in results:
        variant = f":{one.variant}" if one.variant else ""
        named = f"`{version.model}@{version.version}{variant}`"
        if one.problem:
            show(f"{named} differs from what was registered: {one.problem}")
        else:
            show(f"{named} is intact: {one.path}, sha256 {one.digest}")


def _artefact(artefact: Artefact) -> str:
    if artefact.kind == "uri":
        return artefact.location
    files = f" in {count(artefact.files, 'file')}" if artefact.kind == "folder" else ""
    return f"{artefact.location} ({file_bytes(artefact.size_bytes)}{files})"


def _lineage(lineage: Lineage) -> list[tuple[str, str]]:
    changes = " with local changes" if lineage.has_local_changes else ""
    return [
        ("dataset", lineage.dataset),
        ("code", f"{lineage.code}{changes}" if lineage.code else ""),
        ("job", lineage.job),
        ("parent", lineage.parent),
    ]


def _aliases(aliases: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={number}" for name, number in sorted(aliases.items()))


def _metrics(metrics: Mapping[str, float]) -> str:
    shown = [f"{name}={value:g}" for name, value in list(metrics.items())[:METRICS_SHOWN]]
    more = len(metrics) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more else shown)


def _change(change: ModelChange) -> str:
    when = f"{minute_of(change.at or '')} {change.by}:"
    if change.kind == "registered":
        return f"{when} registered version {change.version}"
    if change.kind == "removed":
        return f"{when} removed version {change.version}"
    if change.kind == "stage":
        return f"{when} moved version {change.version} from {change.before} to {change.what}"
    if not change.version:
        return f"{when} deleted alias {change.what}, which pointed to version {change.before}"
    before = f" from version {change.before}" if change.before else ""
    return f"{when} moved alias {change.what}{before} to version {change.version}"
