"""Read task files in the layout that SkyPilot uses, as job files.

A task file has `run` in place of `command`. Each of its keys becomes a key of a job file, or is
named in a note, or is a fault with a hint: none is dropped. A job is refused if a key that asks for
resources, order or placement is not supported.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from tenfold.files.core.document import Document, Table
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.finding import Path as KeyPath

_COUNTED = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?::(?P<count>\d+(?:\.\d+)?))?\Z")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(\+?)\Z")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*(?:GB|GiB|G)?(\+?)\Z", re.IGNORECASE)
_ENV = """\
export SKYPILOT_NODE_RANK="${PET_NODE_RANK:-0}" SKYPILOT_NUM_NODES="${PET_NNODES:-1}"
export SKYPILOT_NUM_GPUS_PER_NODE=%d
export SKYPILOT_TASK_ID="${TENFOLD_JOB:-}" SKYPILOT_NODE_IPS="${MASTER_ADDR:-127.0.0.1}"
"""
"""SkyPilot's variables. The addresses of the other nodes are not known to a job: the first one is
enough for `--master_addr`."""
NOTED: Mapping[str, str] = {
    "use_spot": "capacity is that of the fleet; a job that may be stopped says `preemptible`",
    "disk_size": "disk space is not scheduled",
    "disk_tier": "disk space is not scheduled",
    "ports": "ports are not opened; the processes of a job reach each other on their nodes",
    "labels": "labels are not stored",
    "autostop": "nodes are not stopped",
    "job_recovery": "a job that loses a node starts again in any case",
    "spot_recovery": "a job that loses a node starts again in any case",
    "accelerator_args": "accelerators have no arguments here",
    "network_tier": "use `within` in a job file to keep nodes close to each other",
    "experimental": "Tenfold has no such settings",
    "config": "Tenfold has no such settings",
    "event_callback": "no command is run on events; follow them with the Python client",
}
"""Keys without which a job is the same."""
REFUSED: Mapping[str, str] = {
    "cloud": "remove it; sites are chosen with tags: `needs` in a job file",
    "infra": "remove it; sites are chosen with tags: `needs` in a job file",
    "region": "remove it; sites are chosen with tags: `needs` in a job file",
    "zone": "remove it; sites are chosen with tags: `needs` in a job file",
    "instance_type": "state `accelerators`, `cpus` and `memory`",
    "any_of": "state one set of resources; `accelerators` may list several types",
    "ordered": "state one set of resources; `accelerators` may list several types",
    "job_group": "submit the jobs one by one, and order them with `after` in a job file",
    "file_mounts": "put the files on storage that all nodes have, and use their path",
    "storage": "put the files on storage that all nodes have, and use their path",
    "volumes": "put the files on storage that all nodes have, and use their path",
    "service": "deploy a service instead of submitting a job",
    "pool": "remove it; nodes are shared through the queue",
    "inputs": "order jobs with `after` in a job file",
    "outputs": "order jobs with `after` in a job file",
}
"""Keys without which a job would be another one."""


class TaskFile(Struct, kw_only=True):
    """A task as a job file, and what is different about it."""

    document: Document
    notes: list[str] = field(default_factory=list[str])


def is_task(values: Mapping[str, object]) -> bool:
    """Tell whether a file is a task: it has `run`, which no job file has."""
    return "run" in values and "command" not in values


def read_task(document: Document, env: Mapping[str, object] | None = None) -> TaskFile:
    """Return a task as a job file; raise `InvalidFile` with all keys that are not supported.

    `env` are variables of the command line: they replace those of the file.
    """
    return _Reading(document, env or {}).read()


class _Reading:
    def __init__(self, document: Document, env: Mapping[str, object]) -> None:
        self._document = document
        self._given = env
        self._values = dict(document.values)
        self._keys: Table = {}
        self._sources: dict[str, KeyPath] = {}
        """The keys of the task that keys of the job file come from."""
        self._notes: list[str] = []
        self._findings: list[Finding] = []

    def read(self) -> TaskFile:
        for key in ("name", "workdir"):
            if (value := self._values.pop(key, None)) is not None:
                self._set(key, value, (key,))
        if isinstance(folder := self._keys.get("workdir"), str) and "://" not in folder:
            self._keys["workdir"] = str(Path(folder).expanduser().absolute())
            self._note("workdir", "the job runs in this folder; nothing is copied")
        elif folder is not None:
            self._fault(("workdir",), "is not a folder", "use a folder that all nodes have")
        if (nodes := self._values.pop("num_nodes", None)) is not None:
            self._set("nodes", nodes, ("num_nodes",))
        self._resources(self._values.pop("resources", None))
        self._environment()
        self._command()
        for key in self._values:
            self._leftover((key,))
        if self._findings:
            self._findings.sort(key=lambda one: one.line or 0)
            raise InvalidFile(self._document.file, self._findings)
        return TaskFile(
            document=Document(self._document.file, self._keys, self._line_of), notes=self._notes
        )

    def _set(self, key: str, value: object, path: KeyPath) -> None:
        self._keys[key], self._sources[key] = value, path

    def _line_of(self, path: KeyPath) -> int | None:
        first = path[0] if path else ""
        source = self._sources.get(first) if isinstance(first, str) else None
        return self._document.line_of(path if source is None else (*source, *path[1:]))

    def _note(self, key: str, text: str) -> None:
        self._notes.append(f"{key}: {text}")

    def _fault(self, path: KeyPath, what: str, hint: str) -> None:
        name = ".".join(str(part) for part in path)
        self._findings.append(
            Finding(
                code="unsupported-option",
                message=f"`{name}` {what}",
                hint=hint,
                path=path,
                file=self._document.file,
                line=self._document.line_of(path),
            )
        )

    def _leftover(self, path: tuple[str, ...]) -> None:
        key = path[-1]
        if key in NOTED:
            self._note(".".join(path), NOTED[key])
        elif key in REFUSED:
            self._fault(path, "is not supported", REFUSED[key])
        else:
            self._fault(path, "is unknown", "remove it, or write a job file with `command`")

    def _resources(self, given: object) -> None:
        if given is None:
            return
        if not isinstance(given, dict):
            self._fault(("resources",), "must be a table", "write `resources:` with keys below it")
            return
        resources = dict(cast("Table", given))
        if (types := resources.pop("accelerators", None)) is not None:
            self._accelerators(types)
        for name, key, pattern in (
            ("cpus", "cpus_per_node", _AMOUNT),
            ("memory", "memory_gib_per_node", _MEMORY),
        ):
            if (amount := resources.pop(name, None)) is not None:
                self._amount(name, key, pattern, amount)
        if (image := resources.pop("image_id", None)) is not None:
            path = ("resources", "image_id")
            if isinstance(image, str) and image.startswith("docker:"):
                self._set("image", image.removeprefix("docker:"), path)
            else:
                self._fault(path, "is not a container image", "use `docker:NAME`")
        for name in resources:
            self._leftover(("resources", name))

    def _accelerators(self, given: object) -> None:
        path = ("resources", "accelerators")
        if isinstance(given, dict):
            found = [(str(name), str(count)) for name, count in cast("Table", given).items()]
        else:
            words = cast("list[object]", given) if isinstance(given, list) else [given]
            matches = [_COUNTED.match(str(word)) for word in words]
            found = [(one["name"], one["count"] or "1") for one in matches if one is not None]
            if len(found) < len(matches):
                self._fault(path, "expects NAME or NAME:COUNT", "use, for example, `H100:8`")
                return
        counts = list(dict.fromkeys(float(count) for _, count in found if _AMOUNT.match(count)))
        if len(counts) != 1:
            self._fault(
                path, "asks for different numbers of GPUs", "state one number for all types"
            )
            return
        count = counts[0]
        self._set("gpus_per_node", int(count) if count == int(count) else count, path)
        names = [name for name, _ in found]
        self._set("accelerator", names[0] if len(names) == 1 else names, path)

    def _amount(self, name: str, key: str, pattern: re.Pattern[str], given: object) -> None:
        path = ("resources", name)
        match = pattern.match(str(given))
        if match is None:
            self._fault(path, f"expects a number, got `{given}`", "use, for example, `32` or `32+`")
            return
        if match[2]:
            self._note(f"resources.{name}", f"{given} counts as {match[1]}")
        amount = float(match[1])
        self._set(key, int(amount) if amount == int(amount) else amount, path)

    def _environment(self) -> None:
        found: dict[str, object] = {}
        for key in ("envs", "env", "secrets"):
            given = self._values.pop(key, None)
            if given is None:
                continue
            if not isinstance(given, dict):
                self._fault((key,), "must be a table", f"write `{key}:` with variables below it")
                continue
            if key == "secrets":
                self._note(key, "their values are shown to members of the team, as those of `env`")
            for name, value in cast("Table", given).items():
                if name in self._given:
                    continue
                if value is None:
                    self._fault((key, name), "has no value", f"pass `--env {name}=VALUE`")
                else:
                    found[name] = _text(value)
        if found:
            self._set("env", found, ("envs",) if "envs" in self._document.values else ("env",))

    def _command(self) -> None:
        run, setup = self._values.pop("run"), self._values.pop("setup", None)
        if not isinstance(run, str) or not run.strip():
            self._fault(("run",), "must be shell commands", "write `run: |` and lines below it")
            return
        if setup is not None and not isinstance(setup, str):
            self._fault(("setup",), "must be shell commands", "write `setup: |` and lines below it")
            return
        gpus = self._keys.get("gpus_per_node")
        variables = _ENV % (gpus if isinstance(gpus, int) else 0)
        lines = f'{variables}exec bash -c "$1" run'
        words = ["bash", "-c", lines, "task", run]
        if setup and setup.strip():
            lines = f'{variables}bash -c "$2" setup && exec bash -c "$1" run'
            words = ["bash", "-c", lines, "task", run, setup]
            self._note("setup", "it runs on each node before `run`, at each start of the job")
        if "SKYPILOT_NODE_IPS" in run:
            self._note("run", "SKYPILOT_NODE_IPS has only the address of the first node")
        self._set("command", words, ("run",))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
