"""Turn the options of sbatch into the keys of a job file; what cannot be honoured is named.

Each option becomes a key, or is named in a note, or is a fault with a hint. The fleet is asked
for what only it knows: types of GPUs, tags of nodes, and their size for `--exclusive`.
"""

import os
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from tenfold.files.sbatch.environment import OF_IMAGE, OF_ROOT, passed_on
from tenfold.files.sbatch.notes import home_notes, step_notes
from tenfold.files.sbatch.output_files import missing_folders, with_output_files
from tenfold.files.sbatch.script import BatchScript, SlurmOption, with_same_random
from tenfold.files.sbatch.site import NodeSize, Site, matching_types, selecting
from tenfold.files.sbatch.tables import HANDLED, IGNORED, OTHER_NAMES, REFUSED
from tenfold.files.sbatch.values import folder_name, gpu_count, read_dependency
from tenfold.files.sbatch.wording import PerNode, Wording

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?\Z", re.IGNORECASE)
_GIB = {"K": 1 / (1 << 20), "M": 1 / (1 << 10), "G": 1.0, "T": 1_024.0}
_ENDLESS = ("unlimited", "infinite", "0", "partition_limit")
SCRIPT_ARGUMENT_MAX = 100_000
"""Longer scripts are run from their file: Linux limits an argument to 128 KiB."""


class OptionFault(Struct, frozen=True):
    """An option that cannot be honoured."""

    option: SlurmOption
    message: str
    hint: str
    is_unsupported: bool = False
    """Whether the option is right for Slurm, so that the job may be submitted without it."""


class BatchJob(Struct, kw_only=True):
    """A batch script as a job."""

    keys: dict[str, object] = field(default_factory=dict[str, object])
    notes: list[str] = field(default_factory=list[str])
    faults: list[OptionFault] = field(default_factory=list[OptionFault])
    wait: bool = False
    test_only: bool = False
    parsable: bool = False
    quiet: bool = False
    wording: Wording = Wording()


def batch_job(
    script: BatchScript,
    options: Sequence[SlurmOption],
    arguments: Sequence[str],
    *,
    folder: str,
    site: Site | None,
    own_keys: Mapping[str, object] | None = None,
) -> BatchJob:
    """Return the job of a script; `options` of the command line replace those of its lines.

    `own_keys` are keys that the caller sets; options that mean the same are left out.
    """
    return _Translation(script, options, folder, site, own_keys or {}).run(arguments)


class _Translation:
    def __init__(
        self,
        script: BatchScript,
        options: Sequence[SlurmOption],
        folder: str,
        site: Site | None,
        own_keys: Mapping[str, object],
    ) -> None:
        self._script = script
        self._given = {one.name: one for one in (*script.options, *options)}
        self._folder = folder
        self._site = site
        self._own = own_keys
        self._made = BatchJob()
        self._env: dict[str, str] = {}
        self._tags: list[str] = []
        self._tasks = 1
        """Tasks on each node."""
        self._per_node: dict[str, PerNode] = {}
        self._types_by: tuple[Sequence[str], SlurmOption] | None = None
        """The types of GPUs that options name, and the last of these options."""
        self._pools: tuple[str, ...] = ()
        """The pools of the partition; none for all."""

    def run(self, arguments: Sequence[str]) -> BatchJob:
        made, keys = self._made, self._made.keys
        self._names()
        # First: it may say which types of GPUs a node can have.
        if (one := self._given.get("partition")) is not None:
            self._partition(one)
        self._size()
        self._memory()
        self._limits()
        self._place()
        self._order()
        self._environment()
        self._leftovers()
        made.wording = Wording(self._script.path, self._given, self._per_node)
        keys |= self._own
        nodes = keys.get("nodes")
        nodes = nodes if isinstance(nodes, int) else 1
        if nodes > 1 and not keys.get("gpus_per_node") and not keys.get("gpus"):
            option = self._given.get("nodes") or SlurmOption(f"--nodes={nodes}", "nodes", "")
            message = f"{nodes} nodes without GPUs: a job of several nodes needs GPUs on each"
            self._fault(option, message, "use one node, or add --gpus-per-node")
        made.notes += step_notes(self._script, nodes, self._tasks)
        keys["command"] = list(self._command(arguments, nodes))
        keys["slurm_variables"] = True
        own = self._own.get("env")
        keys["env"] = {**self._env, **(own if isinstance(own, dict) else {})}
        if "HOME" not in keys["env"]:
            made.notes += home_notes(self._script)
        return made

    def _value(self, name: str) -> str:
        one = self._given.get(name)
        return "" if one is None else one.value.strip()

    def _fault(
        self, option: SlurmOption, message: str, hint: str, *, is_unsupported: bool = False
    ) -> None:
        self._made.faults.append(OptionFault(option, message, hint, is_unsupported))

    def _note(self, option: SlurmOption, text: str) -> None:
        self._made.notes.append(f"{option.text}: {text}")

    def _number(self, name: str) -> int | None:
        """Return a whole number; None if it is not given, or is none."""
        one = self._given.get(name)
        if one is None:
            return None
        value = one.value.strip()
        if value.isascii() and value.isdecimal() and len(value) < 10:
            return int(value)
        self._fault(one, f"`{one.text}` is not a whole number", f"write --{name}=4")
        return None

    def _names(self) -> None:
        keys = self._made.keys
        stem = Path(self._script.path).stem or "wrap"
        name = self._value("job-name")
        keys["name"] = folder_name(name or stem)
        if name and keys["name"] != name:
            self._note(self._given["job-name"], f"the job is named `{keys['name']}`")
        self._env["SLURM_JOB_NAME"] = name or Path(self._script.path).name or "wrap"
        if team := self._value("account"):
            keys["team"] = team
        if image := self._value("container-image"):
            keys["image"] = image

    def _size(self) -> None:
        keys, given = self._made.keys, self._given
        nodes = self._nodes()
        each, tasks = self._number("ntasks-per-node"), self._number("ntasks")
        if each is None and tasks is not None:
            each = -(-tasks // (nodes or 1))
            if nodes and tasks % nodes:
                self._fault(
                    given["ntasks"],
                    f"{tasks} tasks cannot be spread evenly over {nodes} nodes",
                    f"use a multiple of {nodes}",
                )
            elif nodes is None and tasks > 1:
                text = f"the job gets one node, and `srun` starts {tasks} tasks there; see -N"
                self._note(given["ntasks"], text)
        elif each and tasks is not None and nodes is None:
            nodes = -(-tasks // each)
        self._tasks = max(1, each or 1)
        per_task = self._number("cpus-per-task")
        gpus_each = self._gpus(nodes)
        self._cpus(nodes, per_task, gpus_each)
        if nodes is not None:
            keys["nodes"] = nodes
        elif keys.keys() & {"cpus_per_node"} and "gpus" in keys:
            keys["nodes"] = 1
        self._env["SLURM_NTASKS_PER_NODE"] = str(self._tasks)
        if per_task is not None:
            self._env["SLURM_CPUS_PER_TASK"] = str(per_task)
        self._exclusive()

    def _cpus(self, nodes: int | None, per_task: int | None, gpus_each: int | None) -> None:
        """Set the CPUs per node, and remember which option did."""
        keys = self._made.keys
        if per_task is not None or self._tasks > 1:
            keys["cpus_per_node"] = float(self._tasks * (per_task or 1))
            by = PerNode("cpus-per-task", self._tasks)
            if per_task is None and "ntasks-per-node" in self._given:
                by = PerNode("ntasks-per-node")
            elif per_task is None:
                by = PerNode("ntasks", 1 / (nodes or 1))
            self._per_node["cpus_per_node"] = by
        if (per_gpu := self._number("cpus-per-gpu")) is not None:
            keys["cpus_per_node"] = float(per_gpu * (gpus_each or 1))
            self._per_node["cpus_per_node"] = PerNode("cpus-per-gpu", gpus_each or 1)

    def _nodes(self) -> int | None:
        one = self._given.get("nodes")
        if one is None:
            return None
        first, dash, last = one.value.partition("-")
        if first.isdecimal() and int(first) and (not dash or first == last):
            return int(first)
        sizes = [size for size in (first, last) if size.isdecimal() and int(size)]
        hint = f"write --nodes={' or --nodes='.join(sizes or ['2'])}"
        self._fault(one, f"`{one.text}` is not one number of nodes", hint)
        return None

    def _gpus(self, nodes: int | None) -> int | None:
        """Set the keys for GPUs; return how many each node has, if that is known."""
        keys = self._made.keys
        for name in ("gpus-per-node", "gres", "gpus-per-task", "gpus"):
            one = self._given.get(name)
            if one is None:
                continue
            found = gpu_count(one.value, is_gres=name == "gres")
            if found is None:
                what = "a generic resource other than GPUs" if name == "gres" else "not GPUs"
                self._fault(one, f"`{one.text}` is {what}", "use --gpus-per-node=TYPE:NUMBER")
                continue
            kind, number = found
            if kind and (types := self._types(kind, one)):
                self._accelerators(types, one)
            if name == "gpus" and not (nodes is None and number <= 1):
                keys["gpus"] = float(number)
                return number // nodes if nodes else None
            keys["gpus_per_node"] = float(number * (self._tasks if name == "gpus-per-task" else 1))
            return int(keys["gpus_per_node"])
        return None

    def _types(self, word: str, option: SlurmOption) -> list[str]:
        """Return the types of GPUs of the fleet that a word names."""
        if self._site is None:
            return [word]
        found = matching_types(word, self._site.types)
        if not found:
            has = ", ".join(self._site.types) or "none"
            hint = f"its types: {has}; without a type, the job may use any"
            message = f"the fleet has no GPU type `{word}`"
            self._fault(option, message, hint, is_unsupported=True)
        return found

    def _accelerators(self, types: Sequence[str], option: SlurmOption) -> None:
        """Set the types of GPUs that an option names, of those that options before it name."""
        before, by = self._types_by or (types, option)
        both = [one for one in types if one in before]
        if both:
            self._made.keys["accelerator"] = both
            self._types_by = (both, option)
            return
        message = f"`{by.text}` has no GPUs of the type that `{option.text}` names"
        self._fault(option, message, f"its types: {', '.join(before)}; remove one of the options")

    def _sizes(self) -> list[NodeSize]:
        """Return the sizes of the nodes that the job may use."""
        types = self._made.keys.get("accelerator")
        return [
            size
            for size in (() if self._site is None else self._site.sizes)
            if (not isinstance(types, list) or size.accelerator in types)
            and (not self._pools or size.pool in self._pools)
        ]

    def _exclusive(self) -> None:
        one = self._given.get("exclusive")
        if one is None:
            return
        if one.value:
            message = f"`{one.text}` is not supported"
            self._fault(one, message, "use --exclusive", is_unsupported=True)
            return
        keys = self._made.keys
        sizes = self._sizes()
        if len({(size.gpus, size.cpus) for size in sizes}) != 1:
            has = " nor known" if not sizes else " of one size"
            hint = "request all its GPUs: --gpus-per-node=8"
            self._fault(one, f"nodes are not all{has}, so a whole node is not one size", hint)
            return
        gpus, cpus = sizes[0].gpus, sizes[0].cpus
        total = keys.pop("gpus", None)
        if isinstance(total, float) and gpus and "nodes" not in keys:
            keys["nodes"] = -(-int(total) // gpus)
        if gpus:
            keys["gpus_per_node"] = float(gpus)
        if cpus:
            keys["cpus_per_node"] = float(cpus)
        self._note(one, f"requests all {gpus} GPUs and {cpus:g} CPUs of each node")

    def _memory(self) -> None:
        keys = self._made.keys
        for name, factor in (("mem", None), ("mem-per-cpu", "cpus"), ("mem-per-gpu", "gpus")):
            one = self._given.get(name)
            if one is None:
                continue
            match = _SIZE.match(one.value.strip())
            gib = 0.0 if match is None else float(match[1]) * _GIB[match[2].upper() or "M"]
            if match and not gib and name == "mem":
                self._whole_memory(one)
                continue
            if not gib:
                self._fault(one, f"`{one.text}` is not a size", f"write --{name}=4G")
                continue
            units = 1.0
            if factor is not None:
                each = keys.get("cpus_per_node" if factor == "cpus" else "gpus_per_node")
                if factor == "gpus" and each is None and isinstance(keys.get("gpus"), float):
                    nodes = keys.setdefault("nodes", 1)
                    each = cast("float", keys["gpus"]) / cast("int", nodes)
                units = each if isinstance(each, float) and each else 1.0
            keys["memory_gib_per_node"] = gib * units
            self._per_node["memory_gib_per_node"] = PerNode(name, units)
            if "gpus" in keys:
                keys.setdefault("nodes", 1)

    def _whole_memory(self, one: SlurmOption) -> None:
        """Set all memory of a node, if all nodes that the job may use have the same."""
        sizes = {size.memory_gib for size in self._sizes()}
        if len(sizes) != 1 or not (gib := max(sizes)):
            what = "is not known" if self._site is None else "differs between nodes"
            message = f"`{one.text}` requests all memory of a node, which {what}"
            self._fault(one, message, "write what the job needs, such as --mem=4G")
            return
        self._made.keys["memory_gib_per_node"] = gib
        self._per_node["memory_gib_per_node"] = PerNode("mem")
        self._note(one, f"requests all {gib:,.1f} GiB of each node")

    def _limits(self) -> None:
        keys = self._made.keys
        if (time := self._value("time")) and time.lower() not in _ENDLESS:
            keys["time_limit"] = f"{time}m" if time.replace(".", "").isdecimal() else time
        if (one := self._given.get("array")) is not None:
            members, percent, most = one.value.partition("%")
            # In Slurm a number alone is one index.
            members = f"{members}-{members}" if members.strip().isdecimal() else members
            keys["array"] = f"{members}{percent}{most}"
        if (one := self._given.get("signal")) is not None:
            _, at, seconds = one.value.partition("@")
            if at and seconds.isdecimal() and int(seconds):
                keys["grace"] = float(seconds)
            self._note(one, "jobs get SIGTERM, at the time limit, then SIGKILL after `grace`")
        if (one := self._given.get("no-requeue")) is not None:
            keys["preemptible"] = False
            self._note(one, "it is not preempted, but starts again if it loses its node")

    def _place(self) -> None:
        keys = self._made.keys
        if (one := self._given.get("constraint")) is not None:
            self._constraint(one)
        if (one := self._given.get("switches")) is not None:
            if one.value.partition("@")[0] == "1":
                keys["within"], keys["how"] = "leaf", "required"
            else:
                self._fault(one, f"`{one.text}` is not one switch", "use --switches=1")

    def _partition(self, one: SlurmOption) -> None:
        site = self._site or Site()
        where = "remove the line" if one.line else "leave it out"
        names = [name for name in re.split(r"[,\s]+", one.value) if name]
        unknown = [name for name in names if not any(kind.is_named(name) for kind in site.kinds)]
        if unknown or not names:
            known = ", ".join(dict.fromkeys((*site.pools, *site.tags)))
            hint = f"valid: {known}; {where} to use any node" if known else REFUSED["partition"]
            message = f"no partition `{', '.join(unknown)}`"
            self._fault(one, message, hint, is_unsupported=True)
            return
        wanted = [kind for kind in site.kinds if any(kind.is_named(name) for name in names)]
        self._pools = tuple(kind.pool for kind in wanted)
        chosen = selecting(site, wanted)
        if chosen is None:
            message = f"no GPU type and no tag tells the nodes of `{one.value}` from others"
            tag = f'add a tag to its pool in the fleet file: `certifications = ["{names[0]}"]`'
            hint = f"{tag}, or {where} to use any node"
            self._fault(one, message, hint, is_unsupported=True)
            return
        if chosen.needs:
            self._needs(chosen.needs)
        if chosen.avoids:
            self._made.keys["avoids"] = list(chosen.avoids)
        if chosen.types:
            self._accelerators(chosen.types, one)
        self._note(one, chosen.text())

    def _constraint(self, one: SlurmOption) -> None:
        text = one.value.strip().strip("()")
        if not re.fullmatch(r"[\w.:+-]+(?:&[\w.:+-]+)*|[\w.:+-]+(?:\|[\w.:+-]+)*", text):
            self._fault(one, f"`{one.text}` cannot be read", "use tags joined by &")
            return
        words = re.split(r"[&|]", text)
        site = self._site
        if site is None:
            self._needs(words)
            return
        types = [matching_types(word, site.types) for word in words]
        if "|" in text:
            if all(types):
                self._accelerators(list(dict.fromkeys(sum(types, list[str]()))), one)
            else:
                self._fault(one, f"`{text}` names other things than types of GPUs", "use one tag")
            return
        for word, kinds in zip(words, types, strict=True):
            if word in site.tags:
                self._needs([word])
            elif kinds:
                self._accelerators(kinds, one)
            else:
                has = ", ".join((*site.tags, *site.types)) or "none"
                self._fault(one, f"no node has the tag `{word}`", f"tags and types: {has}")

    def _needs(self, tags: Sequence[str]) -> None:
        self._tags = list(dict.fromkeys([*self._tags, *tags]))
        self._made.keys["needs"] = self._tags

    def _order(self) -> None:
        keys = self._made.keys
        if (one := self._given.get("dependency")) is not None:
            self._dependency(one)
        if (one := self._given.get("nice")) is not None:
            value = one.value or "100"
            if re.fullmatch(r"-?[0-9]{1,9}", value):
                keys["priority"] = -int(value)
            else:
                message = f"`{one.text}` is not a whole number of at most nine digits"
                self._fault(one, message, "write --nice=100")
        if (priority := self._number("priority")) is not None:
            keys["priority"] = priority

    def _dependency(self, option: SlurmOption) -> None:
        keys = self._made.keys
        found = read_dependency(option.value)
        if isinstance(found, str):
            hint = "use afterok, afterany or singleton, separated by commas"
            self._fault(option, found, hint, is_unsupported="not supported" in found)
            return
        keys.update({key: value for key, value in found.items() if value})

    def _environment(self) -> None:
        self._env |= {"SLURM_SUBMIT_DIR": self._folder, "SLURM_SUBMIT_HOST": os.uname().nodename}
        if chdir := self._value("chdir"):
            self._made.keys["workdir"] = str(Path(self._folder, Path(chdir).expanduser()))
        one = self._given.get("export")
        if one is None:
            return
        for part in one.value.split(","):
            name, is_set, value = part.strip().partition("=")
            if name == "ALL":
                left_out = OF_ROOT if os.geteuid() == 0 else frozenset[str]()
                left_out = OF_IMAGE if "image" in self._made.keys else left_out
                passed = passed_on(os.environ, left_out)
                self._env = {**passed, **self._env}
                text = f"passes {len(passed)} variables; the journal stores them with the job"
                self._note(one, text)
            elif name in ("NONE", "NIL", ""):
                continue
            elif is_set:
                self._env[name] = value
            elif (own := os.environ.get(name)) is not None:
                self._env[name] = own
            else:
                self._note(one, f"`{name}` is not set here")

    def _leftovers(self) -> None:
        made, given = self._made, self._given
        made.wait, made.test_only = "wait" in given, "test-only" in given
        made.parsable, made.quiet = "parsable" in given, "quiet" in given
        for name, one in given.items():
            if name in HANDLED or name == "partition":
                continue
            if name in IGNORED:
                self._note(one, f"ignored: {IGNORED[name]}")
            elif name in REFUSED:
                message = f"`{one.text}` is not supported"
                self._fault(one, message, REFUSED[name], is_unsupported=True)
            else:
                same = OTHER_NAMES.get(name)
                near = [same] if same else get_close_matches(name, sorted(HANDLED), 1)
                near = near or get_close_matches(name, [*IGNORED, *REFUSED], 1)
                hint = f"did you mean --{near[0]}?" if near else "see `tenfold sbatch --help`"
                self._fault(one, f"`{one.text}` is no option of sbatch", hint)

    def _command(self, arguments: Sequence[str], nodes: int) -> tuple[str, ...]:
        script = self._script
        wrapped = self._value("wrap")
        if "wrap" in self._given:
            command: tuple[str, ...] = ("/bin/sh", "-c", wrapped)
        elif script.is_shell and len(script.text.encode()) <= SCRIPT_ARGUMENT_MAX:
            # As in Slurm, the script is that of the submission: later changes do not count.
            name = Path(script.path).name
            text = with_same_random(script) if nodes > 1 else script.text
            command = (*script.interpreter, "-c", text, name, *arguments)
        else:
            path = str(Path(self._folder, script.path))
            command = (*script.interpreter, path, *arguments)
        workdir = self._made.keys.get("workdir")
        folder = workdir if isinstance(workdir, str) else self._folder
        files = (self._value("output"), self._value("error"))
        self._made.notes += missing_folders(files, folder)
        appends = self._value("open-mode") == "append" or nodes > 1
        shell = script.interpreter if script.is_shell else ("/bin/sh",)
        return with_output_files(command, shell, files, folder, appends=appends)
