"""Read a sites file: which engine runs the jobs at each site of a fleet."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from tenfold.files.core.document import read_document
from tenfold.files.core.rows import read_rows
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.service.routing import Url
from tenfold.model.strings import Line, Name

EngineKind = Literal["local", "slurm", "ray"]
LOST_AFTER_S = 60.0
"""An assumption: longer than a restart of a Slurm controller or a Ray head usually takes."""
KEYS: dict[EngineKind, tuple[str, ...]] = {
    "local": (),
    "slurm": ("conf", "partition", "account", "qos"),
    "ray": ("address", "token_file"),
}
"""The keys of each engine, besides those of all."""
NEEDED: dict[EngineKind, tuple[str, ...]] = {"local": (), "slurm": ("conf",), "ray": ("address",)}


class SiteEngine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[site]]`: the engine of one site."""

    name: Name
    """A site of the fleet file."""
    engine: EngineKind
    lost_after_s: Annotated[float, Meta(ge=1, le=86_400)] = LOST_AFTER_S
    """How long the engine may owe an answer before its nodes are down."""
    conf: Line = ""
    """The `slurm.conf` of a Slurm cluster."""
    partition: Line = ""
    account: Line = ""
    qos: Line = ""
    address: Url | None = None
    """The URL of a Ray head's dashboard."""
    token_file: Line = ""
    """A file with the token of a Ray cluster."""


def read_sites(path: Path, fleet: FleetSpec) -> tuple[SiteEngine, ...]:
    """Return the engine of each site of a fleet that has nodes, or raise `InvalidFile`."""
    document = read_document(path)
    findings: list[Finding] = [
        Finding(
            code="unknown-key",
            message=f"unknown key `{key}`",
            hint="a sites file has [[site]] tables only",
            path=(key,),
        )
        for key in document.values
        if key != "site"
    ]
    rows = read_rows(SiteEngine, document.values.get("site", []), ("site",), findings)
    folder = path.absolute().parent
    rows = {
        position: replace(
            row, conf=_from(folder, row.conf), token_file=_from(folder, row.token_file)
        )
        for position, row in rows.items()
    }
    for position, row in rows.items():
        findings += _wrong_keys(row, position)
        findings += _missing_files(row, position)
    findings += _misnamed(rows, fleet)
    if findings:
        located = [
            replace(one, file=document.file, line=document.line_of(one.path)) for one in findings
        ]
        raise InvalidFile(str(path), located)
    return tuple(rows.values())


def _wrong_keys(row: SiteEngine, position: int) -> list[Finding]:
    """Return keys of other engines, which would do nothing, and keys that are missing."""
    found: list[Finding] = []
    for kind, keys in KEYS.items():
        found += [
            Finding(
                code="key-of-another-engine",
                message=f"site `{row.name}` has `{key}`, which engine `{row.engine}` does not use",
                hint=f'remove it, or use engine = "{kind}"',
                path=("site", position, key),
            )
            for key in keys
            if kind != row.engine and getattr(row, key)
        ]
    found += [
        Finding(
            code="missing-key",
            message=f"site `{row.name}` with engine `{row.engine}` has no `{key}`",
            hint=f"add `{key} = ...` to this [[site]]",
            path=("site", position),
        )
        for key in NEEDED[row.engine]
        if not getattr(row, key)
    ]
    return found


def _from(folder: Path, named: str) -> str:
    return str(folder / named) if named else ""


def _missing_files(row: SiteEngine, position: int) -> list[Finding]:
    return [
        Finding(
            code="no-such-file",
            message=f"site `{row.name}`: no such file: `{getattr(row, key)}`",
            hint="check the path; relative paths start at the folder of the sites file",
            path=("site", position, key),
        )
        for key in ("conf", "token_file")
        if getattr(row, key) and not Path(getattr(row, key)).is_file()
    ]


def _misnamed(rows: dict[int, SiteEngine], fleet: FleetSpec) -> list[Finding]:
    """Return sites that the fleet does not have or that are there twice, and those left out."""
    with_nodes = dict.fromkeys(str(pool.site) for pool in fleet.pools)
    named: dict[str, int] = {}
    found: list[Finding] = []
    for position, row in rows.items():
        if row.name in named:
            message, hint = f"site `{row.name}` is there twice", "remove one of them"
        elif row.name not in with_nodes:
            message = f"the fleet has no nodes at a site `{row.name}`"
            hint = f"its sites with nodes are: {', '.join(with_nodes)}"
        else:
            named[row.name] = position
            continue
        found.append(
            Finding(code="wrong-site", message=message, hint=hint, path=("site", position, "name"))
        )
    found += [
        Finding(
            code="site-without-engine",
            message=f"the fleet has nodes at site `{name}`, which has no engine here",
            hint=f'add [[site]] with name = "{name}" and an engine: local, slurm or ray',
            path=("site",),
        )
        for name in with_nodes
        if name not in named
    ]
    return found
