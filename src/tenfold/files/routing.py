"""Read a routing file: what a gateway routes by, and the file with its API keys.

A routing file has the keys of the routing state, so the answer of the control plane, saved as
YAML (which includes JSON), is one too.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_IRWXG, S_IRWXO
from typing import TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.core.document import Document, Table, read_document
from tenfold.files.core.read_errors import read_error
from tenfold.files.core.rows import read_row, read_rows
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.fleet import finding
from tenfold.model.fleet.finding import Finding
from tenfold.model.service.routing import (
    Overflow,
    Replica,
    Revision,
    RoutingState,
    Service,
    TeamLimits,
    TokenDigest,
    models_of,
)

R = TypeVar("R", bound=Struct)
LISTS: dict[str, type[Struct]] = {
    "services": Service,
    "teams": TeamLimits,
    "tokens": TokenDigest,
}
NESTED: dict[type[Struct], dict[str, type[Struct]]] = {
    Service: {"revisions": Revision, "overflow": Overflow},
    Revision: {"replicas": Replica},
}
"""Lists of tables in tables, which are read one by one so that all errors are found."""


def read_routing(path: Path) -> RoutingState:
    """Return a routing file, or raise `InvalidFile` with all its errors."""
    document = read_document(path)
    findings: list[Finding] = []
    values = document.values
    lists = {key: _rows(kind, values.get(key), (key,), findings) for key, kind in LISTS.items()}
    plain = {key: value for key, value in values.items() if key not in LISTS}
    state = read_row(RoutingState, plain, (), findings) or RoutingState()
    state = replace(
        state,
        services=cast(tuple[Service, ...], lists["services"]),
        teams=cast(tuple[TeamLimits, ...], lists["teams"]),
        tokens=cast(tuple[TokenDigest, ...], lists["tokens"]),
    )
    if not findings:
        findings += _checks(state)
    if findings:
        raise InvalidFile(str(path), _located(findings, document))
    return state


def read_keys(path: Path) -> dict[str, str]:
    """Return API keys by name, from a file that only its owner may read."""
    document = read_document(path)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise read_error(str(path), error) from None
    if mode & (S_IRWXG | S_IRWXO):
        raise InputError(
            "keys-readable",
            f"`{path}` has API keys and can be read by others than its owner",
            f"chmod 600 {path}",
            file=str(path),
        )
    keys: dict[str, str] = {}
    for name, value in document.values.items():
        is_key = isinstance(value, str) and 0 < len(value) <= 4_096
        if not isinstance(value, str) or not is_key or not value.isprintable():
            found = Finding(
                code="wrong-value",
                # The value may be a key, so it is not shown.
                message=f"`{name}` expects an API key on one line",
                hint=f'write {name} = "..."',
                path=(name,),
            )
            raise InvalidFile(str(path), _located([found], document))
        keys[name] = value
    return keys


def _rows(
    kind: type[R], value: object, path: finding.Path, findings: list[Finding]
) -> tuple[R, ...]:
    """Return a list of tables, with the lists in them."""
    if value is None:
        return ()
    nested = NESTED.get(kind, {})
    if not nested or not isinstance(value, list):
        return tuple(read_rows(kind, value, path, findings).values())
    rows: list[R] = []
    for position, item in enumerate(cast(list[object], value)):
        here = (*path, position)
        if not isinstance(item, dict):
            read_row(kind, item, here, findings)
            continue
        table = cast(Table, item)
        inner = {
            key: _rows(each, table.get(key), (*here, key), findings) for key, each in nested.items()
        }
        plain = {key: part for key, part in table.items() if key not in nested}
        row = read_row(kind, plain, here, findings)
        if row is not None:
            rows.append(replace(row, **inner))
    return tuple(rows)


def _located(findings: list[Finding], document: Document) -> list[Finding]:
    located = [
        replace(found, file=document.file, line=document.line_of(found.path)) for found in findings
    ]
    return sorted(located, key=lambda found: (found.line or 0, found.code))


def _checks(state: RoutingState) -> Iterator[Finding]:
    yield from _twice("services", [one.name for one in state.services])
    yield from _twice("teams", [one.name for one in state.teams])
    names = {one.name for one in state.services}
    for position, token in enumerate(state.tokens):
        for service in token.services:
            if service not in names:
                yield Finding(
                    code="unknown-service",
                    message=f"token of `{token.team}` names the service `{service}`, "
                    "which is not in the file",
                    hint=f"services: {', '.join(sorted(names)) or 'none'}",
                    path=("tokens", position, "services"),
                )
    yield from _models(state)
    for position, service in enumerate(state.services):
        yield from _service(("services", position), service)


def _models(state: RoutingState) -> Iterator[Finding]:
    """Yield models that two services answer for the same team."""
    seen: dict[str, list[Service]] = {}
    for position, service in enumerate(state.services):
        for model in models_of(service):
            for other in seen.get(model, []):
                if not other.teams or not service.teams or set(other.teams) & set(service.teams):
                    yield Finding(
                        code="duplicate-model",
                        message=f"`{other.name}` and `{service.name}` both serve the model "
                        f"`{model}` for the same team",
                        hint="give each its own `models` or `teams`",
                        path=("services", position),
                    )
            seen.setdefault(model, []).append(service)


def _service(path: finding.Path, service: Service) -> Iterator[Finding]:
    yield from _twice((*path, "revisions"), [one.name for one in service.revisions])
    yield from _twice((*path, "overflow"), [one.name for one in service.overflow])
    replicas = [one.id for each in service.revisions for one in each.replicas]
    yield from _twice((*path, "revisions"), replicas, "replicas")
    if service.revisions and not any(one.weight for one in service.revisions):
        yield Finding(
            code="no-weight",
            message=f"every revision of `{service.name}` has weight 0, so no request is answered",
            hint="give one revision a `weight` above 0",
            path=(*path, "revisions"),
        )


def _twice(path: finding.Path | str, names: list[str], what: str = "") -> Iterator[Finding]:
    where = (path,) if isinstance(path, str) else path
    kind = what or str(where[-1])
    seen: dict[str, bool] = {}
    for position, name in enumerate(names):
        if name in seen:
            yield Finding(
                code="duplicate-name",
                message=f"two `{kind}` entries are named `{name}`",
                hint="give each its own name",
                path=where if what else (*where, position),
            )
        seen[name] = True
