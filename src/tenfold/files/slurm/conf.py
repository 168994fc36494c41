"""Read the scheduling settings of a `slurm.conf` into a `SlurmPolicy`.

Keys are case-insensitive, a backslash continues a line, `Include` reads other files, and keys
that do not affect scheduling are ignored. All errors are reported at once, with file and line.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tenfold.files.core.document import read_text
from tenfold.files.slurm.times import slurm_seconds
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.policy.slurm import Backfill, PriorityWeights, SlurmPartition, SlurmPolicy
from tenfold.model.units import SECOND, Millis

T = TypeVar("T")
INCLUDE_DEPTH_MAX = 10
UNSET = ("", "(null)", "N/A", "n/a", "NONE", "none")
"""How `scontrol show` prints a setting without a value."""
_PAIR = re.compile(r'(?<!\w)([A-Za-z_]\w*)\s*\+?=\s*("[^"]*"|\S*)')
_COMMENT = re.compile(r"(?<!\\)#.*")
_OTHER_LINES = ("nodename", "nodeset", "downnodes", "frontendname")


class Setting(NamedTuple):
    """A value with its file and line."""

    key: str
    value: str
    file: str
    line: int


class _Conf:
    """Settings by lower-case key (the last one wins), and the findings about them."""

    def __init__(self) -> None:
        self.settings: dict[str, Setting] = {}
        self.partitions: list[dict[str, Setting]] = []
        self.findings: list[Finding] = []

    def add(self, pairs: list[Setting]) -> None:
        by_key = {pair.key.lower(): pair for pair in pairs}
        if "partitionname" in by_key:
            self.partitions.append(by_key)
        elif not any(key in by_key for key in _OTHER_LINES):
            self.settings.update(by_key)

    def read(self, setting: Setting | None, default: T, parse: Callable[[str], T]) -> T:
        """Return the parsed value of a setting; a value that cannot be parsed adds a finding."""
        if setting is None:
            return default
        try:
            return parse(setting.value)
        except ValueError as error:
            self.findings.append(
                Finding(
                    code="wrong-value",
                    message=f"`{setting.key}` is `{setting.value[:60]}`: {error}",
                    hint="see `man slurm.conf` for valid values",
                    file=setting.file,
                    line=setting.line,
                    path=(setting.key,),
                )
            )
            return default

    def get(self, key: str, default: T, parse: Callable[[str], T]) -> T:
        """Return a global setting."""
        return self.read(self.settings.get(key.lower()), default, parse)


def read_slurm_conf(path: Path) -> SlurmPolicy:
    """Return the scheduling policy in a `slurm.conf`, or raise with all errors."""
    conf = _Conf()
    for pairs in conf_lines(path):
        conf.add(pairs)
    policy = _policy(conf)
    if conf.findings:
        raise InvalidFile(str(path), conf.findings)
    return policy


def read_shown_policy(config: str, partitions: str, file: str) -> SlurmPolicy:
    """Return the policy in `scontrol show config` and `scontrol show partitions --oneliner`."""
    conf = _Conf()
    for number, line in enumerate(config.splitlines(), start=1):
        key, equals, value = line.partition("=")
        if equals and value.strip() not in UNSET and key.strip().isidentifier():
            conf.add([Setting(key.strip(), value.strip(), file, number)])
    for number, line in enumerate(partitions.splitlines(), start=1):
        pairs = [Setting(key, _unquoted(text), file, number) for key, text in _PAIR.findall(line)]
        conf.add([pair for pair in pairs if pair.value not in UNSET])
    policy = _policy(conf)
    if conf.findings:
        raise InvalidFile(file, conf.findings)
    return policy


def conf_lines(path: Path, depth: int = 0) -> Iterator[list[Setting]]:
    """Yield the settings of each line, with continued lines joined and included files read."""
    pending, first_line = "", 0
    for number, raw in enumerate(read_text(path).splitlines(), start=1):
        line = _COMMENT.sub("", raw)
        first_line = first_line or number
        if line.rstrip().endswith("\\"):
            pending += line.rstrip()[:-1]
            continue
        whole, at = pending + line, first_line
        pending, first_line = "", 0
        words = whole.split()
        if len(words) == 2 and words[0].lower() == "include":
            yield from conf_lines(_included(path, words[1].strip('"'), at, depth), depth + 1)
            continue
        pairs = [Setting(key, _unquoted(text), str(path), at) for key, text in _PAIR.findall(whole)]
        if pairs:
            yield pairs


def _included(path: Path, name: str, line: int, depth: int) -> Path:
    inner = path.parent / name
    problem, code = "", "no-such-file"
    if depth >= INCLUDE_DEPTH_MAX:
        problem, code = "`Include` lines form a cycle or are nested too deeply", "nested-too-deep"
    elif not inner.is_file():
        problem = f"included file `{inner}` does not exist"
    if problem:
        raise InputError(code, problem, "fix or remove the `Include`", file=str(path), line=line)
    return inner


def _policy(conf: _Conf) -> SlurmPolicy:
    parameters = conf.get("SchedulerParameters", {}, _parameters)
    number = _numbers(conf, parameters)
    return SlurmPolicy(
        priority=conf.get("PriorityType", "basic", _choice("basic", "multifactor")),
        weights=PriorityWeights(
            age=conf.get("PriorityWeightAge", 0, _count),
            fairshare=conf.get("PriorityWeightFairshare", 0, _count),
            job_size=conf.get("PriorityWeightJobSize", 0, _count),
            partition=conf.get("PriorityWeightPartition", 0, _count),
            qos=conf.get("PriorityWeightQOS", 0, _count),
            association=conf.get("PriorityWeightAssoc", 0, _count),
            tres=conf.get("PriorityWeightTRES", {}, _tres_weights),
        ),
        age_max_ms=conf.get("PriorityMaxAge", SlurmPolicy().age_max_ms, _time),
        decay_half_life_ms=conf.get(
            "PriorityDecayHalfLife", SlurmPolicy().decay_half_life_ms, _time
        ),
        calc_period_ms=conf.get("PriorityCalcPeriod", SlurmPolicy().calc_period_ms, _time),
        favors_small=conf.get("PriorityFavorSmall", False, _yes_no),
        priority_flags=conf.get("PriorityFlags", (), _words),
        scheduler=conf.get("SchedulerType", "backfill", _choice("backfill", "builtin")),
        backfill=_backfill(parameters, number),
        queue_depth=number("default_queue_depth", 100),
        partition_depth=number("partition_job_depth", 0),
        interval_ms=Millis(number("sched_interval", 60) * SECOND),
        interval_min_us=number("sched_min_interval", 2),
        jobs_started_max=number("sched_max_job_start", 0),
        defers="defer" in parameters,
        parameters=parameters,
        preempt_type=conf.get("PreemptType", "none", _plugin),
        preempt_modes=conf.get("PreemptMode", ("off",), _words),
        select_type=conf.get("SelectType", "linear", _plugin),
        select_parameters=conf.get("SelectTypeParameters", (), _words),
        partitions=_partitions(conf),
    )


def _backfill(parameters: dict[str, str], number: Callable[[str, int], int]) -> Backfill:
    longest = number("bf_max_time", 0)
    return Backfill(
        interval_ms=Millis(number("bf_interval", 30) * SECOND),
        resolution_ms=Millis(number("bf_resolution", 60) * SECOND),
        window_ms=Millis(number("bf_window", 1_440) * 60 * SECOND),
        time_max_ms=Millis(longest * SECOND) if longest else None,
        jobs_tested_max=number("bf_max_job_test", 500),
        jobs_started_max=number("bf_max_job_start", 0),
        jobs_per_user_max=number("bf_max_job_user", 0),
        jobs_per_partition_max=number("bf_max_job_part", 0),
        array_reservations_max=number("bf_max_job_array_resv", 20),
        age_reserve_min_ms=Millis(number("bf_min_age_reserve", 0) * SECOND),
        priority_reserve_min=number("bf_min_prio_reserve", 0),
        goes_on="bf_continue" in parameters,
        prefers_busy_nodes="bf_busy_nodes" in parameters,
    )


def _numbers(conf: _Conf, parameters: dict[str, str]) -> Callable[[str, int], int]:
    """Return a reader of single scheduler parameters."""
    stated = conf.settings.get("schedulerparameters")

    def number(name: str, default: int) -> int:
        if stated is None or not parameters.get(name):
            return default
        return conf.read(stated._replace(key=name, value=parameters[name]), default, _count)

    return number


def _partitions(conf: _Conf) -> tuple[SlurmPartition, ...]:
    """Return the partitions; one named DEFAULT sets the defaults of those after it."""
    defaults: dict[str, Setting] = {}
    found: dict[str, SlurmPartition] = {}
    for stated in conf.partitions:
        if stated["partitionname"].value.upper() == "DEFAULT":
            defaults = {**defaults, **stated}
            continue
        for name in stated["partitionname"].value.split(","):
            found[name] = _partition(conf, name, {**defaults, **stated})
    return tuple(found.values())


def _partition(conf: _Conf, name: str, row: dict[str, Setting]) -> SlurmPartition:
    rank = conf.read(row.get("priority"), 1, _count)
    return SlurmPartition(
        name=name,
        nodes=row["nodes"].value if "nodes" in row else "",
        is_default=conf.read(row.get("default"), False, _yes_no),
        priority_tier=conf.read(row.get("prioritytier"), rank, _count),
        priority_job_factor=conf.read(row.get("priorityjobfactor"), rank, _count),
        time_max_ms=conf.read(row.get("maxtime"), None, _time_or_none),
        time_default_ms=conf.read(row.get("defaulttime"), None, _time_or_none),
        grace_ms=Millis(conf.read(row.get("gracetime"), 0, _count) * SECOND),
        preempt_mode=row["preemptmode"].value.lower() if "preemptmode" in row else "",
        qos=row["qos"].value if "qos" in row else "",
    )


def _unquoted(text: str) -> str:
    return text[1:-1] if text.startswith('"') else text


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError("expected a whole number")
    return int(text)


def _time(text: str) -> Millis:
    return Millis(round((slurm_seconds(text) or 0.0) * SECOND))


def _time_or_none(text: str) -> Millis | None:
    seconds = slurm_seconds(text)
    return None if seconds is None else Millis(round(seconds * SECOND))


def _yes_no(text: str) -> bool:
    if text.lower() not in ("yes", "no", "true", "false", "1", "0", "up", "down"):
        raise ValueError("expected YES or NO")
    return text.lower() in ("yes", "true", "1", "up")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip().lower() for word in text.split(",") if word.strip())


def _plugin(text: str) -> str:
    return text.rpartition("/")[2].lower()


def _choice(*choices: Any) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        if _plugin(text) not in choices:
            raise ValueError(f"expected `{'` or `'.join(choices)}`")
        return _plugin(text)

    return parse


def _parameters(text: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in text.split(",") if part.strip())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _tres_weights(text: str) -> dict[str, int]:
    weights: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        weights[name.lower()] = _count(value)
    return weights
