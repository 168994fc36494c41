"""What is wrong with a job, in the options of sbatch: `--mem` in place of `--memory-gib-per-node`.

A control plane knows the keys of a job, not how its submitter wrote them. A limit for a whole node
is converted for options that count for each task, CPU or GPU.
"""

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.sbatch.script import SlurmOption
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.finding import Finding

OPTIONS: Mapping[str, str] = {
    "name": "job-name",
    "team": "account",
    "workdir": "chdir",
    "env": "export",
    "image": "container-image",
    "time_limit": "time",
    "after": "dependency",
    "after_any": "dependency",
    "singleton": "dependency",
    "needs": "constraint",
    "accelerator": "gpus-per-node",
    "within": "switches",
    "how": "switches",
    "grace": "signal",
    "cpus_per_node": "cpus-per-task",
    "memory_gib_per_node": "mem",
}
"""The option of sbatch that sets a key; other keys have the name of their option."""
_MENTION = re.compile(r"`(--)?([a-z][a-z_-]*)(?: ([\d.]+))?`")
_BARE = ("after", "needs")
"""Keys of one word that hints name; other words in quotes may be values."""
_DURATION = "use minutes, or a duration such as `90m`, `12h`, `2d`, `1-12:00:00`"
_TIME = "write minutes, `HH:MM:SS` or `D-HH:MM:SS`: --time=90, --time=1-12:00:00"
_INDEXES = "write the number of members, or indexes such as"
_SPREAD = frozenset({"nodes", "ntasks-per-node"})
_AFTER_ANY = re.compile(r"`after_any` \(-d (\S+)\)")
_PREFERRED = '`how = "preferred"` in a job file'


class PerNode(Struct, frozen=True):
    """The option that set an amount per node, and how many of its units a node has."""

    option: str
    units: float = 1.0


class Wording(Struct, frozen=True):
    """How the options of one script are named."""

    script: str = ""
    given: Mapping[str, SlurmOption] = {}
    per_node: Mapping[str, PerNode] = {}
    """For `cpus_per_node` and `memory_gib_per_node`."""

    def text(self, text: str) -> str:
        """Return a message or hint with the options of sbatch in place of keys."""
        text = text.replace(_DURATION, _TIME).replace(_PREFERRED, "remove `--switches`")
        # A number alone is one index here.
        text = _AFTER_ANY.sub(r"`--dependency=\1`", text.replace(_INDEXES, "write indexes such as"))
        if "no-requeue" in self.given:
            text = text.replace("use `--preemptible`", "remove `--no-requeue`")
        return _MENTION.sub(self._option, text)

    def error(self, error: InvalidFile) -> InvalidFile:
        """Return the errors with the options of sbatch, and the lines of those in the script."""
        return InvalidFile(self.script, [self._finding(one) for one in error.findings])

    def _finding(self, one: Finding) -> Finding:
        found = replace(one, message=self.text(one.message), hint=self.text(one.hint))
        name = str(one.path[0]).removeprefix("--") if one.path else ""
        option = self.given.get(self._name(name.replace("-", "_")))
        if option is None:
            return found
        where = (f"--{option.name}",)
        if not option.line:
            return replace(found, path=where)
        return replace(found, path=where, file=self.script, line=option.line)

    def _name(self, key: str) -> str:
        if key in self.per_node:
            return self.per_node[key].option
        return OPTIONS.get(key, key.replace("_", "-"))

    def _option(self, match: re.Match[str]) -> str:
        key, value = match[2].replace("-", "_"), match[3]
        if key not in OPTIONS or not (match[1] or "_" in key or key in _BARE):
            return match[0]
        name = self._name(key)
        if value is None:
            return f"`--{name}`"
        units = self.per_node[key].units if key in self.per_node else 1.0
        if key == "memory_gib_per_node":
            return f"`--{name}={int(float(value) * 1_024 / units)}M`"
        if key != "cpus_per_node":
            return f"`--{name}={value}`"
        each = int(float(value) / units)
        if each:
            return f"`--{name}={each}`"
        whole = "ntasks-per-node" if self.given.keys() & _SPREAD else "ntasks"
        whole = "gpus-per-node" if name == "cpus-per-gpu" else whole
        return f"`--{name}=1` with `--{whole}={max(1, int(float(value)))}`"
