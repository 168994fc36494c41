"""The model registry over HTTP: versions are added, aliases and stages move, nothing is edited.

A model belongs to the team of the token that registered it. Below `operator`, other teams' models
do not exist.
"""

from typing import Annotated

from anyio import to_thread
from litestar import Router, delete, get, post
from litestar.params import FromPath, QueryParameter

from tenfold.journal import read as jobs
from tenfold.journal.models import read
from tenfold.journal.models.read import ModelRecord
from tenfold.journal.models.rows import ModelVersionRow
from tenfold.live.inbox import (
    Answer,
    MoveAlias,
    RegisterModel,
    RemoveVersion,
    Request,
    StageVersion,
)
from tenfold.model import registry
from tenfold.model.api.models import (
    AliasChange,
    Model,
    ModelChange,
    Models,
    ModelSummary,
    ModelVersion,
    NewVersion,
    StageChange,
    VersionNumber,
)
from tenfold.model.ids import TeamId
from tenfold.model.reason import Reason
from tenfold.model.registry import LATEST, ModelReference, model_reference
from tenfold.model.strings import FOLDER_NAME
from tenfold.server.auth.access import AuthedRequest, can_see, requires_role, visible_team
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.inbox_client import call_loop, check_writable
from tenfold.server.problems import Problem, refusal
from tenfold.server.runtime.deps import Control, ControlDep
from tenfold.server.schemas import iso
from tenfold.server.submissions import read_body

Team = Annotated[
    str | None,
    QueryParameter(max_length=80, pattern=FOLDER_NAME, description="The team of the model."),
]


@get("/models", opt=requires_role(Role.viewer), sync_to_thread=True, operation_id="listModels")
def list_models(request: AuthedRequest, control: ControlDep, team: Team = None) -> Models:
    """List models; below `operator`, only your team's."""
    seen = visible_team(request.user, team)
    if team not in (None, seen):
        return Models(models=())
    return Models(models=tuple(_summary(one) for one in read.models(control.store, seen)))


@get(
    "/models/{model:str}",
    opt=requires_role(Role.viewer),
    sync_to_thread=True,
    operation_id="showModel",
)
def show_model(
    request: AuthedRequest, control: ControlDep, model: FromPath[str], team: Team = None
) -> Model:
    """Show a model: its versions, aliases, and who changed what."""
    record = _record(control, request.user, model, team)
    return Model(
        team=record.team,
        model=record.model,
        aliases={row.alias: row.number for row in record.aliases if row.number},
        versions=tuple(_version(record, row) for row in reversed(record.versions)),
        changes=tuple(
            ModelChange(
                at=iso(row.at_ms),
                by=row.by_user,
                kind=row.kind,
                what=row.what,
                version=row.number,
                before=row.before,
            )
            for row in read.changes(control.store, record.team, record.model)
        ),
    )


@get(
    "/models/{model:str}/versions/{version:str}",
    opt=requires_role(Role.viewer),
    sync_to_thread=True,
    operation_id="showModelVersion",
)
def show_version(
    request: AuthedRequest,
    control: ControlDep,
    model: FromPath[str],
    version: FromPath[str],
    team: Team = None,
) -> ModelVersion:
    """Show one version, named by its number, an alias or `latest`."""
    record = _record(control, request.user, model, team)
    return _version(record, version_in(record, version))


@post(
    "/models/{model:str}/versions",
    opt=requires_role(Role.member),
    status_code=201,
    operation_id="registerModel",
)
async def register_version(
    request: AuthedRequest, control: ControlDep, model: FromPath[str]
) -> VersionNumber:
    """Register a version; the same content again is the same version."""
    row = read_body(NewVersion, await request.body(), "the version")
    team = _own_team(request.user, row.team)
    name = _model_name(model)
    await to_thread.run_sync(_check_job, control, request.user, row)
    _check_parent(row)
    version = registry.ModelVersion(
        team=team,
        model=name,
        number=1,
        artefact=row.artefact,
        variants=tuple(row.variants),
        lineage=row.lineage,
        metrics=row.metrics,
        note=row.note,
        by=request.user.name,
    )
    _check_variants(version)
    return _changed(team, name, await _call(control, RegisterModel(version)))


@post(
    "/models/{model:str}/aliases",
    opt=requires_role(Role.member),
    status_code=200,
    operation_id="moveModelAlias",
)
async def move_alias(
    request: AuthedRequest, control: ControlDep, model: FromPath[str]
) -> VersionNumber:
    """Let an alias name a version, or delete it if no version is given."""
    row = read_body(AliasChange, await request.body(), "the alias")
    record = await to_thread.run_sync(_record, control, request.user, model, row.team)
    number = 0 if row.version is None else version_in(record, row.version).number
    change = MoveAlias(TeamId(record.team), model, row.alias, number, request.user.name)
    return _changed(record.team, model, await _call(control, change))


@post(
    "/models/{model:str}/stages",
    opt=requires_role(Role.member),
    status_code=200,
    operation_id="stageModel",
)
async def stage_version(
    request: AuthedRequest, control: ControlDep, model: FromPath[str]
) -> VersionNumber:
    """Set the stage of a version: `development`, `staging`, `production` or `archived`."""
    row = read_body(StageChange, await request.body(), "the stage")
    record = await to_thread.run_sync(_record, control, request.user, model, row.team)
    number = version_in(record, row.version).number
    change = StageVersion(TeamId(record.team), model, number, row.stage, request.user.name)
    return _changed(record.team, model, await _call(control, change))


@delete(
    "/models/{model:str}/versions/{version:str}",
    opt=requires_role(Role.member),
    status_code=200,
    operation_id="removeModelVersion",
)
async def remove_version(
    request: AuthedRequest,
    control: ControlDep,
    model: FromPath[str],
    version: FromPath[str],
    team: Team = None,
) -> VersionNumber:
    """Remove a version without an alias, by its number. Its files stay where they are."""
    record = await to_thread.run_sync(_record, control, request.user, model, team)
    number = int(version) if version.isascii() and version.isdecimal() and len(version) < 10 else 0
    if not number:
        raise _unknown(model, version)
    change = RemoveVersion(TeamId(record.team), model, number, request.user.name)
    return _changed(record.team, model, await _call(control, change))


def find_version(
    control: Control, token: Token, reference: ModelReference, team: str | None = None
) -> ModelVersionRow:
    """Return the version that a reference names for a token; raise if there is none."""
    record = _record(control, token, reference.model, team)
    return version_in(record, reference.version)


def version_in(record: ModelRecord, text: str) -> ModelVersionRow:
    """Return a version that may be used, by number or alias; raise if there is none."""
    row = record.version(text) if len(text) <= 80 else None
    if row is None or row.removed_ms is not None:
        raise _unknown(record.model, text)
    return row


def _record(control: Control, token: Token, model: str, team: str | None) -> ModelRecord:
    """Return a model that a token may see: of its own team, or of the only team that has it."""
    record = None
    if "\0" not in model and len(model) <= 80:
        found = visible_team(token, team) or token.team
        if team in (None, found):
            record = read.model(control.store, found, model)
        if record is None and team is None and token.sees_all_teams:
            teams = read.teams_with(control.store, model)
            if len(teams) > 1:
                message = f"several teams have a model `{model}`: {', '.join(teams[:5])}"
                raise Problem(
                    422, Reason("several-models", sentence=message), "choose one with `team`"
                )
            record = read.model(control.store, teams[0], model) if teams else None
    if record is None:
        raise refusal(Reason("no-such-model", {"name": model[:200]}))
    return record


async def _call(control: Control, request: Request) -> Answer:
    check_writable(control.trouble())
    return await call_loop(control.inbox, request, control.wait_s)


def _own_team(token: Token, team: str | None) -> TeamId:
    if team in (None, token.team) or token.sees_all_teams:
        return TeamId(team or token.team)
    message = f"the token belongs to team `{token.team}`, but the model names team `{team}`"
    raise Problem(
        403,
        Reason("other-team", sentence=message),
        "remove `team`, or use a token of that team",
    )


def _model_name(text: str) -> str:
    reference = model_reference(text)
    if text != reference.model:
        message = f"`{text[:200]}` is not a model name"
        raise Problem(422, Reason("bad-model-reference", sentence=message), "leave out the version")
    return text


def _check_variants(version: registry.ModelVersion) -> None:
    names = [one.name for one in version.variants]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        message = f"variant `{twice}` is given twice"
        raise Problem(422, Reason("wrong-value", sentence=message), "name each variant once")


def _check_job(control: Control, token: Token, row: NewVersion) -> None:
    """Raise if the job that made a version is not one that the token may see."""
    if not row.lineage.job:
        return
    found = jobs.job(control.store, row.lineage.job)
    if found is None or not can_see(token, found.job):
        message = f"no job `{row.lineage.job}`"
        raise Problem(
            422,
            Reason("no-such-job", sentence=message),
            "list your jobs with `tenfold job list`; leave out the job if it was exported",
        )


def _check_parent(row: NewVersion) -> None:
    """Raise if the parent is an alias, which moves: what a version came from does not."""
    if not row.lineage.parent:
        return
    if not model_reference(row.lineage.parent).version.isdecimal():
        raise refusal(Reason("no-such-parent", {"name": row.lineage.parent}))


def _changed(team: str, model: str, answer: Answer) -> VersionNumber:
    return VersionNumber(team=team, model=model, version=answer.number, changed=not answer.again)


def _unknown(model: str, version: str) -> Problem:
    message = f"model `{model}` has no version `{version[:200]}`"
    if version == LATEST:
        message = f"all versions of model `{model}` were removed"
    hint = "list versions with `tenfold model show`; removed ones cannot be used"
    return Problem(404, Reason("no-such-version", sentence=message), hint)


def _summary(record: ModelRecord) -> ModelSummary:
    usable = record.usable
    latest = usable[-1] if usable else None
    return ModelSummary(
        team=record.team,
        model=record.model,
        versions=len(usable),
        latest=None if latest is None else latest.number,
        aliases={row.alias: row.number for row in record.aliases if row.number},
        size_bytes=0 if latest is None else latest.body.artefact.size_bytes,
        registered_at=None if latest is None else iso(latest.registered_ms),
    )


def _version(record: ModelRecord, row: ModelVersionRow) -> ModelVersion:
    version = row.body
    return ModelVersion(
        team=row.team,
        model=row.model,
        version=row.number,
        stage=row.stage,
        aliases=record.aliases_of(row.number),
        artefact=version.artefact,
        variants=version.variants,
        lineage=version.lineage,
        metrics=version.metrics,
        note=version.note,
        registered_by=version.by,
        registered_at=iso(row.registered_ms),
        removed_at=iso(row.removed_ms),
    )


ROUTES = Router(
    "/api/v1",
    route_handlers=[
        list_models,
        show_model,
        show_version,
        register_version,
        move_alias,
        stage_version,
        remove_version,
    ],
)
