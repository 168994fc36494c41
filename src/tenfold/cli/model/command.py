"""`tenfold model`: register versions of models, move aliases and stages, verify files."""

from contextlib import suppress
from os import environ
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from tenfold.cli.arguments import Json
from tenfold.cli.errors import Exit
from tenfold.cli.model.render import show_model, show_models, show_verified, show_version
from tenfold.cli.output import print_json, show
from tenfold.client.client import Client
from tenfold.model.errors import InputError
from tenfold.model.registry import LATEST, ModelReference, Stage, model_reference

app = App(
    name="model",
    help="Register models, and move their aliases and stages.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

Team = Annotated[str | None, Parameter(help="Team of the model (default: the token's)")]
Named = Annotated[str, Parameter(help="Version, as NAME@3, NAME@ALIAS or NAME (the latest)")]


@app.command(name="register")
def register_command(
    name: Annotated[str, Parameter(help="Name of the model")],
    artefact: Annotated[str, Parameter(help="File, directory or URI with the weights")],
    *,
    digest: Annotated[
        str | None, Parameter(help="SHA-256 of the content at the URI, as 64 hexadecimal digits")
    ] = None,
    variant: Annotated[
        tuple[str, ...],
        Parameter(
            help="Quantised variant of the same version, as int8=PATH; may be repeated",
            negative="",
        ),
    ] = (),
    metric: Annotated[
        tuple[str, ...],
        Parameter(help="Metric, as accuracy=0.93; may be repeated", negative=""),
    ] = (),
    dataset: Annotated[str, Parameter(help="Digest or name of the training data")] = "",
    code: Annotated[
        str | None,
        Parameter(help="Revision of the training code, or a git directory (default in a job: .)"),
    ] = None,
    job: Annotated[
        str | None, Parameter(help="Job that produced it (inside a job: the current job)")
    ] = None,
    parent: Annotated[str, Parameter(help="Version that it came from, as NAME@3")] = "",
    note: Annotated[str, Parameter(help="One-line note")] = "",
    alias: Annotated[str | None, Parameter(help="Alias to move to this version")] = None,
    team: Team = None,
    as_json: Json = False,
) -> None:
    """Register a version of a model: files are hashed in place, not copied.

    A version never changes. Registering the same content again prints the existing version.
    """
    _model_name(name)
    if alias is not None:
        _check_alias(alias)
    made_by = environ.get("TENFOLD_JOB", "") if job is None else job
    lineage: dict[str, Any] = {"dataset": dataset, "job": made_by, "parent": parent}
    lineage.update(_code(code if code is not None else "." if made_by and job is None else ""))
    main = _artefact(artefact, digest)
    variants = [_variant(text) for text in variant]
    metrics = dict(_metric(text) for text in metric)
    with Client() as client:
        made = client.register_model(
            name,
            main,
            variants=variants,
            lineage=lineage,
            metrics=metrics,
            note=note,
            team=team,
        )
        if alias is not None:
            client.move_model_alias(name, alias, made.version, team=made.team)
        found = client.model_version(f"{name}@{made.version}", team=made.team)
    if as_json:
        print_json(found)
        return
    verb = "registered" if made.changed else "already registered, with the same content:"
    show(f"{verb} `{name}@{made.version}`, sha256 {found.artefact.digest}")
    if alias is not None:
        show(f"alias `{alias}` points to version {made.version}")


@app.command(name="list")
def list_command(*, team: Team = None, as_json: Json = False) -> None:
    """List models with their latest version and aliases."""
    with Client() as client:
        models = client.models(team=team)
    print_json(models) if as_json else show_models(models)


@app.command(name="show")
def show_command(
    model: Annotated[str, Parameter(help="Model, or one version of it, as NAME@3 or NAME@ALIAS")],
    *,
    team: Team = None,
    as_json: Json = False,
) -> None:
    """Show a model with its versions and changes, or one version with its files and lineage."""
    reference = model_reference(model)
    with Client() as client:
        if "@" in model:
            version = client.model_version(model, team=team)
            print_json(version) if as_json else show_version(version)
            return
        found = client.model(reference.model, team=team)
    print_json(found) if as_json else show_model(found)


@app.command(name="alias")
def alias_command(
    model: Annotated[str, Parameter(help="Version to point the alias at, as NAME@3")],
    alias: Annotated[str, Parameter(help="Alias, such as prod")],
    *,
    delete: Annotated[
        bool,
        Parameter(
            negative="", help="Delete the alias instead of moving it; MODEL can then be just NAME"
        ),
    ] = False,
    team: Team = None,
    as_json: Json = False,
) -> None:
    """Point an alias at a version; the user who moved it is recorded."""
    reference = model_reference(model)
    _check_alias(alias)
    if not delete and "@" not in model:
        raise InputError(
            "no-version",
            f"`{model}` has no version number for alias `{alias}`",
            f"write `{model}@3`, or `{model}@{LATEST}` for the newest",
        )
    with Client() as client:
        version = None if delete else reference.version
        made = client.move_model_alias(reference.model, alias, version, team=team)
    if as_json:
        print_json(made)
    elif delete:
        show(f"deleted alias `{alias}` of `{reference.model}`")
    else:
        already = "" if made.changed else "already "
        show(f"alias `{alias}` of `{reference.model}` {already}points to version {made.version}")


@app.command(name="stage")
def stage_command(
    model: Named,
    stage: Annotated[Stage, Parameter(help="Stage of the version")],
    *,
    team: Team = None,
    as_json: Json = False,
) -> None:
    """Set the stage of a version; new versions start in development."""
    reference = _version_named(model)
    with Client() as client:
        made = client.stage_model(reference.model, reference.version, stage, team=team)
    if as_json:
        print_json(made)
        return
    already = "" if made.changed else "already "
    show(f"`{reference.model}@{made.version}` is {already}in stage {stage}")


@app.command(name="verify")
def verify_command(
    model: Named,
    *,
    path: Annotated[
        Path | None, Parameter(help="Copy to verify instead of the registered location")
    ] = None,
    team: Team = None,
    as_json: Json = False,
) -> None:
    """Read the files of a version again, and compare them with their digest.

    Variants are verified too, unless one is named, as in NAME@3:int8. Exits with status 1 if a file
    was changed.
    """
    # Hashing is not needed by the other commands.
    from tenfold.cli.model.verify import verified  # noqa: PLC0415

    reference = model_reference(model)
    with Client() as client:
        version = client.model_version(str(_main(reference)), team=team)
    results = verified(version, reference.variant, path)
    print_json(results) if as_json else show_verified(version, results)
    if any(one.problem for one in results):
        raise Exit(1)


@app.command(name="remove")
def remove_command(
    model: Annotated[str, Parameter(help="Version to remove, by number, as NAME@3")],
    *,
    team: Team = None,
    as_json: Json = False,
) -> None:
    """Remove a version that no alias points to; its files stay where they are.

    The version can no longer be used, and its number is not assigned again.
    """
    reference = model_reference(model)
    if not reference.version.isdecimal():
        raise InputError(
            "no-version",
            f"`{model}` does not name a version by its number",
            f"write `{reference.model}@3`; `tenfold model show {reference.model}` lists versions",
        )
    with Client() as client:
        made = client.remove_model_version(reference.model, int(reference.version), team=team)
    if as_json:
        print_json(made)
        return
    verb = "removed" if made.changed else "removed before:"
    show(f"{verb} `{reference.model}@{made.version}`; its files were not deleted")


def _main(reference: ModelReference) -> ModelReference:
    return ModelReference(model=reference.model, version=reference.version)


def _model_name(text: str) -> None:
    try:
        is_name = model_reference(text).model == text
    except InputError:
        is_name = False
    if not is_name:
        raise InputError(
            "bad-model-reference",
            f"`{text[:200]}` is not a model name",
            "use letters, digits, `.`, `_` and `-`; the version number is assigned automatically",
        )


def _check_alias(text: str) -> None:
    if text.isdecimal() or text == LATEST:
        raise InputError(
            "bad-alias",
            f"`{text}` cannot be an alias: it names a version already",
            "choose a word, such as `prod`",
        )


def _version_named(text: str) -> ModelReference:
    reference = model_reference(text)
    if reference.variant:
        raise InputError(
            "bad-model-reference",
            f"`{text}` is a variant; only whole versions have stages",
            f"write `{_main(reference)}`",
        )
    return reference


SHA256_DIGITS = 64


def _artefact(text: str, digest: str | None = None) -> dict[str, Any]:
    """Return an artefact as the API takes it: hashed here, or with a digest that was given."""
    import msgspec  # noqa: PLC0415

    from tenfold.cli.progress import progress  # noqa: PLC0415
    from tenfold.files.artefacts import artefact_of, size_of  # noqa: PLC0415

    if "://" in text and not text.startswith("file://"):
        if digest is None:
            raise InputError(
                "no-digest",
                f"the digest of `{text}` is not known: Tenfold does not download URIs",
                "pass it with --digest, or register a local path",
                field="--digest",
            )
        return {"location": text, "kind": "uri", "digest": _sha256(digest)}
    path = Path(text.removeprefix("file://"))
    size = size_of(path)
    with progress(f"reading {path.name}", size) as done:
        found = artefact_of(path, done)
    if digest is not None and _sha256(digest) != found.digest:
        raise InputError(
            "digest-differs",
            f"the SHA-256 of `{text}` is {found.digest}",
            "leave out --digest for local paths, or check the files",
            field="--digest",
        )
    values: dict[str, Any] = msgspec.to_builtins(found)
    return values


def _sha256(text: str) -> str:
    digest = text.removeprefix("sha256:").lower()
    if len(digest) != SHA256_DIGITS or set(digest) - set("0123456789abcdef"):
        raise InputError(
            "wrong-value",
            f"`--digest` must be {SHA256_DIGITS} hexadecimal digits, got `{text[:80]}`",
            "pass what `sha256sum` prints",
            field="--digest",
        )
    return digest


def _variant(text: str) -> dict[str, Any]:
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise _bad_pair("--variant", text, "int8=PATH")
    return {"name": name, "artefact": _artefact(path)}


def _metric(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    with suppress(ValueError):
        if equals and name and abs(number := float(value)) < float("inf"):
            return name, number
    raise _bad_pair("--metric", text, "accuracy=0.93")


def _bad_pair(option: str, text: str, example: str) -> InputError:
    return InputError(
        "wrong-value",
        f"`{option} {text}` is not a name and a value",
        f"write `{option} {example}`",
        field=option,
    )


def _code(text: str) -> dict[str, Any]:
    """Return the code of a lineage: a revision as given, or that of a git folder."""
    from tenfold.cli.job.origin import code_in  # noqa: PLC0415

    if not text:
        return {}
    if not Path(text).is_dir():
        return {"code": text}
    state = code_in(text)
    return {} if state is None else {"code": state.revision, "has_local_changes": state.dirty}
