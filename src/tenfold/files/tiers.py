"""Read tier files: TOML or YAML that lists the backends of each storage tier."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.core.document import Document, read_document
from tenfold.files.core.rows import read_row, read_rows
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.objects.tiers import TIER_NAMES, BackendSpec, TierFile, TierName, TierSpec


def read_tiers(path: Path) -> TierFile:
    """Return the tiers of a file, or raise with all errors and their lines.

    Relative directories start at the folder of the file.
    """
    document = read_document(path)
    findings: list[Finding] = []
    read = _read(document.values, findings)
    if read is not None:
        findings += _faults(read)
    if read is None or findings:
        raise _invalid(document, findings)
    return _resolved(read, path.absolute().parent)


def _read(values: Mapping[str, object], findings: list[Finding]) -> TierFile | None:
    head = read_row(_File, values, (), findings)
    if head is None or findings:
        return None
    tiers: dict[TierName, TierSpec] = {}
    for name, table in head.tiers.items():
        path = ("tiers", name)
        if name not in TIER_NAMES:
            findings.append(
                Finding(
                    code="wrong-value",
                    message=f"`{name}` is not the name of a tier",
                    hint=f"use {', '.join(f'`{one}`' for one in TIER_NAMES)}",
                    path=path,
                )
            )
        if not isinstance(table, dict):
            read_row(TierSpec, table, path, findings)
            continue
        row = cast(dict[str, object], table)
        backends = read_rows(BackendSpec, row.get("backends", []), (*path, "backends"), findings)
        spec = read_row(TierSpec, {**row, "backends": []}, path, findings)
        if spec is not None and name in TIER_NAMES:
            tiers[name] = replace(spec, backends=list(backends.values()))
    return None if findings else TierFile(tiers=tiers)


class _File(Struct, forbid_unknown_fields=True):
    tiers: dict[str, object]


def _faults(file: TierFile) -> Iterator[Finding]:
    if not file.tiers:
        yield Finding(
            code="missing-key",
            message="`tiers` has no tier",
            hint="add one, for example `[tiers.hot]`",
            path=("tiers",),
        )
    names: dict[str, str] = {}
    places: dict[str, str] = {}
    for tier, spec in file.ordered():
        yield from _tier_faults(tier, spec)
        for number, backend in enumerate(spec.backends):
            path = ("tiers", tier, "backends", number)
            yield from _place_faults(backend, path)
            yield from _repeated(names, backend.name, backend.name, "name", path)
            place = backend.directory or backend.url or ""
            if place:
                yield from _repeated(places, place, backend.name, "place", path)


def _tier_faults(tier: str, spec: TierSpec) -> Iterator[Finding]:
    path = ("tiers", tier)
    if (spec.replicas is None) == (spec.erasure is None):
        has = "both" if spec.replicas is not None else "neither"
        yield Finding(
            code="wrong-value",
            message=f"tier `{tier}` has {has} of `replicas` and `erasure`",
            hint='set one of them, such as `replicas = 2` or `erasure = "4+2"`',
            path=path,
        )
        return
    if spec.shards_placeable() < spec.shards:
        layout = f"erasure {spec.erasure}" if spec.erasure else f"{spec.replicas} replicas"
        yield Finding(
            code="too-few-domains",
            message=f"tier `{tier}` places {spec.shards} shards of each blob ({layout}), but its "
            f"failure domains take {spec.shards_placeable()}: one domain holds at most "
            f"{max(1, spec.parity_shards)}",
            hint="add backends in other domains, or use less redundancy",
            path=path,
        )


def _place_faults(backend: BackendSpec, path: tuple[str | int, ...]) -> Iterator[Finding]:
    if (backend.directory is None) == (backend.url is None):
        has = "both" if backend.url is not None else "neither"
        yield Finding(
            code="wrong-value",
            message=f"backend `{backend.name}` has {has} of `directory` and `url`",
            hint='set one of them, such as `directory = "/mnt/nvme0"` or `url = "s3://bucket"`',
            path=path,
        )
    if backend.options and backend.url is None:
        yield Finding(
            code="wrong-value",
            message=f"backend `{backend.name}` has `options`, which only a `url` takes",
            hint="remove `options`",
            path=(*path, "options"),
        )


def _repeated(
    seen: dict[str, str], key: str, name: str, what: str, path: tuple[str | int, ...]
) -> Iterator[Finding]:
    if key in seen:
        yield Finding(
            code="repeated-backend",
            message=f"two backends have the {what} `{key}`",
            hint="each backend needs a name and a directory or URL of its own",
            path=path,
        )
    seen[key] = name


def _resolved(file: TierFile, folder: Path) -> TierFile:
    def backend(one: BackendSpec) -> BackendSpec:
        if one.directory is None:
            return one
        return replace(one, directory=str(folder / Path(one.directory).expanduser()))

    return TierFile(
        tiers={
            name: replace(spec, backends=[backend(one) for one in spec.backends])
            for name, spec in file.tiers.items()
        }
    )


def _invalid(document: Document, findings: Iterable[Finding]) -> InvalidFile:
    located = [
        replace(one, file=document.file, line=document.line_of(one.path)) for one in findings
    ]
    return InvalidFile(document.file, sorted(located, key=lambda one: one.line or 0))
