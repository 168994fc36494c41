"""Read job files and the bodies of submissions.

All errors are reported at once, each with its key, and in a file with its line.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from msgspec import UNSET
from msgspec.structs import replace

from tenfold.files.core.document import Document, read_document
from tenfold.files.core.rows import read_row, wrong_value
from tenfold.files.jobs.key_hints import with_key_hint
from tenfold.files.jobs.size import SIZE_KEYS, Size, size_faults, size_of
from tenfold.files.slurm.times import slurm_seconds
from tenfold.model.api.problems import Fault
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.array_spec import ArraySpec, fold_indexes, read_array
from tenfold.model.job.job import Job, Shape, shape_of
from tenfold.model.job.run_spec import GRACE_MS, CheckpointSpec, RunSpec
from tenfold.model.job.spec import (
    ALIASES,
    DURATION_S_MAX,
    NOT_SUBMITTED,
    JobFile,
    JobSpec,
)
from tenfold.model.job.submission import ARRAY_INDEX, ARRAY_INDEXES, ARRAY_MOST, Submission
from tenfold.model.job.terms import Terms
from tenfold.model.strings import is_one_line
from tenfold.model.units import SECOND, Millis

Spec = TypeVar("Spec", bound=JobSpec)
RESERVED_VARIABLES = (
    "TENFOLD_",
    "PET_",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "MASTER_ADDR",
    "MASTER_PORT",
)
"""Variables that only Tenfold may set, such as `TENFOLD_ARRAY_INDEX` for members of an array."""
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)\Z")
_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_BARE = re.compile(r"\d+(?:\.\d+)?\Z")
_CLOCK = re.compile(r"(?:\d+-(?:[01]?\d|2[0-3])|\d+)(?::[0-5]?\d){0,2}\Z")
"""A Slurm time whose smaller units are in range: not `1:99`."""
_DURATION_HINT = "use seconds, or a duration such as `90m`, `12h`, `2d`, `1-12:00:00`"
_OPTION_HINT = "use minutes, or a duration such as `90m`, `12h`, `2d`, `1-12:00:00`"
_SETTING = re.compile(r"`(\w+) = (?:\"([^`\"]*)\"|([\w.]+))`")
"""A key of a job file with its value, as hints have it."""
_MENTION = re.compile(r"`(\w+)(?: = ([\w.]+))?`")
"""A key of a job file, maybe with its value, in a message."""
_LISTS = ("after", "after_any", "needs", "avoids")
_WITHOUT_OPTION = frozenset(
    {"elastic", "checkpoint", "grace", "silent_limit", "idle_after", "kind"}
    | {"off_peak", "within", "how", "avoids", "data"}
)
"""Keys that only a job file can set."""


class JobSource(NamedTuple):
    """A job file, and options of the command line, which override its keys."""

    document: Document
    options: Mapping[str, object]


def job_source(
    read: Path | Document | None, options: Mapping[str, object] | None = None
) -> JobSource:
    """Read a job file, if there is one; `env` of the options is added to that of the file."""
    if read is None:
        document = Document("", {}, lambda _: None)
    else:
        document = read_document(read) if isinstance(read, Path) else read
    given = dict(options or {})
    own, more = document.values.get("env"), given.get("env")
    if isinstance(own, dict) and isinstance(more, dict):
        given["env"] = {**cast("dict[str, object]", own), **cast("dict[str, object]", more)}
    return JobSource(document, given)


def read_submission(path: Path) -> dict[str, object]:
    """Return the body of a submission from a job file, or raise `FaultyFile` with all errors."""
    return body_of(job_source(path))


def body_of(source: JobSource) -> dict[str, object]:
    """Return the body of a submission, or raise `FaultyFile` with all errors."""
    document, options = source
    findings: list[Finding] = []
    values, written = _by_main_keys(document.values, findings)
    values |= options
    body = {key: value for key, value in values.items() if key not in NOT_SUBMITTED}
    submission_of(body, TeamId("any"), "", findings)
    rest = values.keys() - body.keys()
    if rest:
        in_file: list[Finding] = []
        _job_file(values, in_file)
        findings += [one for one in in_file if rest.intersection(one.path[:1])]
        faulty = {key for one in findings for key in one.path[:1]}
        findings += [_not_submitted(key) for key in values if key in rest and key not in faulty]
    if findings:
        raise _faulty(source, written, findings)
    return body


def faults_in_file(path: Path, faults: Iterable[Fault]) -> InvalidFile:
    """Return the errors that a control plane found in a job, with their lines in its file."""
    return faults_in(job_source(path), faults)


def faults_in(source: JobSource, faults: Iterable[Fault]) -> InvalidFile:
    """Return the errors that a control plane found, with their lines or options."""
    _, written = _by_main_keys(source.document.values, [])
    findings = [
        Finding(
            code=one.code,
            message=one.message,
            hint=one.hint,
            path=tuple(one.field.split(".")) if one.field else (),
        )
        for one in faults
    ]
    return _faulty(source, written, findings)


def read_job_file(path: Path) -> JobFile:
    """Return a job file whose `command` is optional, or raise `FaultyFile` with all errors."""
    source = job_source(path)
    findings: list[Finding] = []
    values, written = _by_main_keys(source.document.values, findings)
    row = _job_file(values, findings)
    if row is None or findings:
        raise _faulty(source, written, findings)
    return row


def job_of(row: JobFile) -> Job:
    """Return the job of a file under its own name; of an array, one member.

    The caller sets the submission time and the dependencies.
    """
    size = size_of(row)
    terms = _terms(row, size)
    return Job(
        id=JobId(row.name),
        shape=_shape(row, size),
        submitted_ms=Millis(0),
        team=TeamId(row.team or ""),
        user=row.user,
        priority=row.priority,
        limit_ms=_millis(row.time_limit),
        terms=replace(terms or Terms(), array=row.name) if row.array else terms,
    )


def submission_of(
    values: Mapping[str, object], team: TeamId, user: str, findings: list[Finding]
) -> Submission | None:
    """Return the submission in these values; None, with findings, if they are invalid.

    `team` is the default: the team of the caller.
    """
    row = _spec(JobSpec, values, findings)
    if row is None or findings:
        if findings:
            # The other keys are checked too, so that all errors come at once.
            findings += _faults_of(_rest(values), values, findings)
        return None
    findings += _faults_of(row, values, ())
    if findings:
        return None
    size, array = size_of(row), _array(row)
    return Submission(
        team=TeamId(row.team or team),
        user=user,
        shape=_shape(row, size),
        run_spec=_run_spec(row),
        priority=row.priority,
        limit_ms=_millis(row.time_limit),
        terms=_live_terms(row, size),
        array=0 if array is None else array.count,
        indexes=() if array is None else array.indexes,
        singleton=row.singleton,
    )


def _by_main_keys(
    values: Mapping[str, object], findings: list[Finding]
) -> tuple[dict[str, object], dict[str, str]]:
    """Return the values with aliases resolved, and the keys as written."""
    found: dict[str, object] = {}
    written: dict[str, str] = {}
    for key, value in values.items():
        main = ALIASES.get(key, key)
        if main in found:
            alias = key if key in ALIASES else written[main]
            findings.append(_one_of(alias, main))
        else:
            found[main], written[main] = value, key
    return found, written


def _faulty(
    source: JobSource, written: Mapping[str, str], findings: Iterable[Finding]
) -> InvalidFile:
    """Return the error with each finding under the key as written, with its line or option."""
    document, options = source
    located: list[Finding] = []
    for one in findings:
        main = next((part for part in one.path if isinstance(part, str)), "")
        is_option = main in options or not document.file
        key = _option(main) if is_option and main else written.get(main, main)
        where = (key, *one.path[1:]) if one.path else ()
        message = one.message.replace(f"`{main}`", f"`{key}`")
        if is_option:
            message = _named_options(message, options)
        file, line = ("", None) if is_option else (document.file, document.line_of(where))
        hint = with_options(one.hint) if is_option else one.hint
        located.append(replace(one, message=message, hint=hint, path=where, file=file, line=line))
    return InvalidFile(document.file, sorted(located, key=lambda one: one.line or 0))


def _named_options(message: str, options: Mapping[str, object]) -> str:
    """Return a message in which the keys that were given as options are named as such."""

    def option(match: re.Match[str]) -> str:
        if match[1] not in options:
            return match[0]
        return f"`{_option(match[1])} {match[2]}`" if match[2] else f"`{_option(match[1])}`"

    return _MENTION.sub(option, message)


def with_options(hint: str) -> str:
    """Return a hint for a command line: `--nodes 2` in place of `nodes = 2`."""

    def option(match: re.Match[str]) -> str:
        key, value = match[1], match[2] or match[3] or ""
        if key in _WITHOUT_OPTION:
            return f"{match[0]} in a job file"
        if value in ("true", "false"):
            return f"`{_option(key if value == 'true' else f'no_{key}')}`"
        return f"`{_option(key)} {value}`"

    found = _SETTING.sub(option, hint.replace(_DURATION_HINT, _OPTION_HINT))
    return found.replace("set `--", "use `--")


def _option(key: str) -> str:
    """Return the option of the command line for a key."""
    return key if key == "command" else f"--{key.replace('_', '-')}"


def _spec(kind: type[Spec], values: Mapping[str, object], findings: list[Finding]) -> Spec | None:
    row = read_row(kind, dict(values), (), findings)
    findings[:] = [with_key_hint(one) for one in findings]
    if isinstance(line := values.get("command"), str):
        findings[:] = [_as_arguments(one, line) for one in findings]
    findings[:] = [_as_list(one, values) for one in findings]
    return row


def _rest(values: Mapping[str, object]) -> JobFile:
    """Return the keys of a submission that are valid; the others have their defaults."""
    kept = {key: value for key, value in values.items() if key not in NOT_SUBMITTED}
    row = read_row(JobFile, kept, (), [])
    assert row is not None, "a job file has no required key"
    return row


def _job_file(values: Mapping[str, object], findings: list[Finding]) -> JobFile | None:
    row = _spec(JobFile, values, findings)
    if row is None:
        return None
    findings += _faults_of(row, values, findings)
    if "checkpoint" in values and "checkpoint_every_s" in values:
        findings.append(_one_of("checkpoint_every_s", "checkpoint"))
    findings += _span_faults(row.checkpoint_every_s, ("checkpoint_every_s",))
    return row


def _faults_of(
    row: JobSpec, values: Mapping[str, object], known: Sequence[Finding]
) -> list[Finding]:
    """Return what is wrong with values that each have the right type, beside the known errors."""
    faulty = [one.path[0] for one in known if one.path]
    found = [] if any(key in faulty for key in SIZE_KEYS) else size_faults(row, values.keys())
    found += _place_faults(row, values)
    return found + [one for one in _faults(row) if one.path[0] not in faulty]


def _place_faults(row: JobSpec, values: Mapping[str, object]) -> Iterator[Finding]:
    """Yield constraints that contradict each other, or that constrain nothing."""
    both = [tag for tag in dict.fromkeys(row.needs) if tag in row.avoids]
    if both:
        message = f"`needs` and `avoids` both name `{both[0]}`: no node is suitable"
        yield _wrong("avoids", message, "remove it from one of them")
    if "how" in values and not row.within:
        message = "`how` says how strictly `within` holds, but `within` is not set"
        yield _wrong("how", message, 'set `within`, such as `within = "rack"`, or remove `how`')


def _as_list(one: Finding, values: Mapping[str, object]) -> Finding:
    """Return the finding for one name in place of a list, with the list."""
    key = one.path[0] if len(one.path) == 1 else ""
    if key not in _LISTS or not isinstance(name := values.get(key), str):
        return one
    return replace(one, hint=f"use `[{json.dumps(name[:60])}]`")


def _as_arguments(one: Finding, line: str) -> Finding:
    """Return the finding for a shell line as `command`, with a hint."""
    if one.path != ("command",):
        return one
    message = "`command` is a string, but must be a list of arguments: it is not run by a shell"
    return replace(one, message=message, hint=f'use `["sh", "-c", {json.dumps(line[:60])}]`')


def _shape(row: JobSpec, size: Size) -> Shape:
    types = [row.accelerator] if isinstance(row.accelerator, str) else row.accelerator
    avoids = [*row.avoids, *(["production"] if row.kind == "experiment" else [])]
    where = PlacementConstraints(
        within=row.within,
        how=row.how,
        needs=tuple(row.needs),
        avoids=tuple(dict.fromkeys(avoids)),
    )
    return shape_of(
        size.gpus,
        gpus_per_node=size.gpus_per_node,
        accelerators=tuple(types),
        cpus=size.cpus,
        memory_gib=size.memory_gib,
        where=where if where.key else None,
    )


def _run_spec(row: JobSpec) -> RunSpec:
    checkpoint = None
    if (saves := row.checkpoint) is not None:
        checkpoint = CheckpointSpec(folder=saves.dir, every_ms=_millis(saves.interval))
    return RunSpec(
        name=row.name,
        command=tuple(row.command),
        env=(*row.env.items(), *_slurm_array(row)),
        folder=row.workdir,
        image=row.image,
        checkpoint=checkpoint,
        grace_ms=_millis(row.grace) or GRACE_MS,
        silent_ms_most=_millis(row.silent_limit),
        slurm_variables=row.slurm_variables,
        origin=row.origin,
    )


def _terms(row: JobSpec, size: Size) -> Terms | None:
    saves = row.checkpoint
    every = None if saves is None else saves.interval
    if isinstance(row, JobFile) and row.checkpoint_every_s is not None:
        every = row.checkpoint_every_s
    terms = Terms(
        kind=row.kind,
        preemptible=row.preemptible is not False,
        checkpoint_every_ms=_millis(every),
        least_gpus=size.least_gpus,
        most_gpus=size.most_gpus,
        after=tuple(JobId(name) for name in row.after),
        after_any=tuple(JobId(name) for name in row.after_any) or UNSET,
        array_most=0 if (array := _array(row)) is None else array.most,
        off_peak=row.off_peak,
        idle_ms=UNSET if row.idle_after is None else _millis(row.idle_after) or UNSET,
        allow_pending=row.allow_pending or UNSET,
        data=tuple(dict.fromkeys(row.data)) or UNSET,
    )
    return None if terms == Terms() else terms


def _array(row: JobSpec) -> ArraySpec | None:
    """Return the members of an array without errors; None for a single job."""
    return None if row.array is None else read_array(str(row.array), ARRAY_MOST)


def _slurm_array(row: JobSpec) -> list[tuple[str, str]]:
    """Return Slurm's variables that all members of an array share."""
    array = _array(row)
    if array is None or not row.slurm_variables:
        return []
    indexes = list(array.indexes) if array.indexes else list(range(array.count))
    step = indexes[1] - indexes[0] if len(indexes) > 1 else 1
    return [
        ("SLURM_ARRAY_TASK_COUNT", str(array.count)),
        ("SLURM_ARRAY_TASK_MIN", str(indexes[0])),
        ("SLURM_ARRAY_TASK_MAX", str(indexes[-1])),
        ("SLURM_ARRAY_TASK_STEP", str(step)),
        (ARRAY_INDEXES, fold_indexes(indexes)),
    ]


def _live_terms(row: JobSpec, size: Size) -> Terms | None:
    """Return the terms of a job that runs: re-ranking does not stop it unless it allows that."""
    terms = _terms(row, size)
    if terms is not None and terms.array_most:
        terms = replace(terms, array_most_always=True)
    if row.preemptible is not None or row.checkpoint is not None:
        return terms
    return replace(terms or Terms(), keep_on_rerank=True)


def _faults(row: JobSpec) -> Iterator[Finding]:
    for key in ("time_limit", "grace", "silent_limit", "idle_after"):
        yield from _span_faults(getattr(row, key), (key,))
    if isinstance(row.array, str):
        try:
            _array(row)
        except ValueError as error:
            hint = "write the number of tasks, or indexes such as 0-19, 1-9:2, 1,3,7 or 0-19%4"
            yield _wrong("array", f"`array` is `{row.array[:60]}`: {error}", hint)
    if row.checkpoint is not None:
        yield from _span_faults(row.checkpoint.interval, ("checkpoint", "interval"))
    if isinstance(row.accelerator, str) and not is_one_line(row.accelerator):
        yield wrong_value(("accelerator",), "a non-empty string", row.accelerator)
    for name in row.env:
        if name.startswith(RESERVED_VARIABLES):
            message = f"`env` sets `{name}`, which only Tenfold may set"
            hint = "remove it"
            if name == ARRAY_INDEX:
                hint = "remove it; `tenfold job rerun 'ARRAY[INDEX]'` runs one task again"
            yield Finding(code="wrong-value", message=message, hint=hint, path=("env", name))


def _span_faults(span: str | float | None, path: tuple[str, ...]) -> Iterator[Finding]:
    if not isinstance(span, str):
        return
    seconds = _seconds(span)
    if _BARE.match(bare := span.strip()):
        key = ".".join(path)
        message = f'`{key}` has no unit: "{bare}" could be minutes or seconds'
        hint = f'write "{bare}m" or "{bare}s"; a number without quotes is seconds'
        yield Finding(code="wrong-value", message=message, hint=hint, path=path)
    elif seconds is None:
        yield wrong_value(path, "a duration", span, hint=_DURATION_HINT)
    elif not seconds:
        message = f"`{'.'.join(path)}` must be longer than 0 s, got `{span}`"
        yield Finding(code="wrong-value", message=message, hint=_DURATION_HINT, path=path)
    elif seconds > DURATION_S_MAX:
        message = f"`{'.'.join(path)}` must be at most {DURATION_S_MAX:,.0f} seconds, got `{span}`"
        yield Finding(code="wrong-value", message=message, hint="use a shorter time", path=path)


def _one_of(key: str, other: str) -> Finding:
    return _wrong(key, f"`{key}` means the same as `{other}`", "use only one of them")


def _not_submitted(key: str) -> Finding:
    message = f"`{key}` is only supported for recorded runs"
    return Finding(code="unknown-key", message=message, hint=NOT_SUBMITTED[key], path=(key,))


def _wrong(key: str, message: str, hint: str) -> Finding:
    return Finding(code="wrong-value", message=message, hint=hint, path=(key,))


def _millis(span: str | float | None) -> Millis | None:
    seconds = _seconds(span) if isinstance(span, str) else span
    return None if seconds is None else Millis(round(seconds * SECOND))


def _seconds(text: str) -> float | None:
    """Return the seconds of `90m` or a Slurm time; None if it is neither."""
    match = _SPAN.match(text.strip().lower())
    if match is not None:
        return float(match[1]) * _UNITS_S[match[2]]
    if _CLOCK.match(text.strip()) is None:
        return None
    try:
        return slurm_seconds(text)
    except ValueError:
        return None
