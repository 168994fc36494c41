"""Read service files and the bodies of deployments.

What a replica needs goes through the reader of job files, so that both mean the same. All errors
are reported at once, each with its key, and in a file with its line.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tenfold.files.core.document import Document, read_document
from tenfold.files.core.rows import read_row
from tenfold.files.jobs.submission import submission_of
from tenfold.files.services.objectives import objective_faults
from tenfold.model.api.problems import Fault
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import TeamId
from tenfold.model.job.submission import Submission
from tenfold.model.registry import model_reference
from tenfold.model.service.spec import MODEL, PORT, Canary, ServiceSpec

_JOB_KEYS = (
    *("command", "name", "team", "image", "env", "workdir", "origin"),
    *("nodes", "gpus", "gpus_per_node", "accelerator", "cpus_per_node", "memory_gib_per_node"),
    *("needs", "avoids", "priority", "preemptible"),
)
"""Keys that a service has in common with jobs."""
_CANARY = Canary()
_RATES = ("slots", "prefill_tokens_per_s", "decode_tokens_per_s")


def read_service(path: Path, model: str = "") -> dict[str, object]:
    """Return the body of a deployment from a service file, or raise with all errors.

    A given `model` replaces that of the file.
    """
    document = read_document(path)
    findings: list[Finding] = []
    values = dict(document.values)
    if model:
        model_reference(model)
        values["model"] = model
    spec_of(values, TeamId("any"), findings)
    if findings:
        raise _invalid(document, findings)
    return values


def faults_in_service(path: Path, faults: Iterable[Fault]) -> InvalidFile:
    """Return the errors that a control plane found in a service, with their lines in its file."""
    document = read_document(path)
    findings = [
        Finding(
            code=one.code,
            message=one.message,
            hint=one.hint,
            path=tuple(one.field.split(".")) if one.field else (),
        )
        for one in faults
    ]
    return _invalid(document, findings)


def spec_of(
    values: Mapping[str, object], team: TeamId, findings: list[Finding]
) -> ServiceSpec | None:
    """Return the service in these values; None, with findings, if they are invalid.

    `team` is the default: the team of the caller.
    """
    given = dict(values)
    if isinstance(given.get("accelerator"), str):
        given["accelerator"] = [given["accelerator"]]
    spec = read_row(ServiceSpec, given, (), findings)
    if spec is None or findings:
        return None
    spec = replace(spec, team=spec.team or team)
    findings += _faults(spec)
    submission_of_service(spec, "", findings)
    return None if findings else spec


def submission_of_service(
    spec: ServiceSpec, user: str, findings: list[Finding]
) -> Submission | None:
    """Return what a replica is as a job; None, with findings, if it is invalid."""
    built: dict[str, object] = msgspec.to_builtins(spec)
    values = {key: built[key] for key in _JOB_KEYS if key in built}
    # Not set in a job means something else than `false`.
    values["preemptible"] = spec.preemptible
    values["kind"] = "service"
    values["grace"] = spec.grace_s
    return submission_of(values, TeamId(spec.team or ""), user, findings)


def _faults(spec: ServiceSpec) -> Iterator[Finding]:
    """Yield what is wrong with values that each have the right type."""
    if spec.most < spec.replicas_min:
        yield Finding(
            code="wrong-value",
            message=f"`replicas_max` is {spec.most}, but `replicas_min` is {spec.replicas_min}",
            hint="raise `replicas_max`, or lower `replicas_min`",
            path=("replicas_max",),
        )
    missing = [key for key in _RATES if getattr(spec, key) is None]
    if spec.scales and missing:
        yield Finding(
            code="missing-key",
            message=f"`replicas_max` is above `replicas_min`, but `{missing[0]}` is missing",
            hint=f"set {', '.join(f'`{key}`' for key in _RATES)}, from a benchmark or from"
            " `tenfold estimate serve`; or use a fixed number of replicas",
            path=("replicas_max",),
        )
    steps = () if spec.canary is None else spec.canary.steps
    if any(later <= earlier for earlier, later in pairwise(steps)):
        yield Finding(
            code="wrong-value",
            message="the steps of `canary` do not grow",
            hint="write them like `steps = [5, 25, 50]`",
            path=("canary", "steps"),
        )
    yield from _canary_faults(spec)
    yield from objective_faults(spec)
    yield from _model_faults(spec)
    if not _is_used(spec, PORT) and not spec.listens:
        yield Finding(
            code="no-port",
            message="neither `command` nor `env` has `{port}`, where each replica is to listen",
            hint='add it, as in `"--port", "{port}"`; if the program reads the variable PORT, '
            "set `listens = true`",
            path=("command",),
        )


def _canary_faults(spec: ServiceSpec) -> Iterator[Finding]:
    canary = spec.canary or _CANARY
    if canary.is_blue_green and canary.steps != _CANARY.steps:
        yield Finding(
            code="wrong-value",
            message="`canary` has both `steps` and `is_blue_green`, which has no steps",
            hint="remove one of them",
            path=("canary", "steps"),
        )
    if not canary.shadow_percent and canary.shadow_s != _CANARY.shadow_s:
        yield Finding(
            code="wrong-value",
            message="`canary` has `shadow_s`, but no requests are copied",
            hint="add `shadow_percent`, or remove `shadow_s`",
            path=("canary", "shadow_s"),
        )


def _model_faults(spec: ServiceSpec) -> Iterator[Finding]:
    if not spec.model:
        if _is_used(spec, MODEL):
            yield Finding(
                code="wrong-value",
                message="`{model}` is used, but `model` is missing",
                hint='add `model = "NAME@ALIAS"`, or deploy with `--model NAME@ALIAS`',
                path=("model",),
            )
        return
    try:
        model_reference(spec.model)
    except InputError as error:
        yield Finding(code=error.code, message=str(error), hint=error.hint, path=("model",))


def _is_used(spec: ServiceSpec, placeholder: str) -> bool:
    return any(placeholder in one for one in (*spec.command, *spec.env.values()))


def _invalid(document: Document, findings: Iterable[Finding]) -> InvalidFile:
    located = [
        replace(one, file=document.file, line=document.line_of(one.path)) for one in findings
    ]
    return InvalidFile(document.file, sorted(located, key=lambda one: one.line or 0))
