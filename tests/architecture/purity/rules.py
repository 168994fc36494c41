"""The rules of purity, each with a name: what a source file does that it may not.

`breaches` is the whole of it. The core and the simulator are given time, chance and files as
arguments; that they never reach for them is checked here by an allow-list of imports and by
reading what they call, iterate and change. Layers are import-linter's.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from architecture.purity.allowed import BELOW, ELAPSED, IMPORTS, ROOMS, SUPPRESSED, WALL_TIME
from architecture.purity.kinds import Kinds
from architecture.purity.order import ordered_by_identity, set_iteration
from architecture.purity.sources import Module
from architecture.purity.views import view_changed

OUTSIDE = {"open", "print", "input", "breakpoint", "exit", "quit", "help"}
DYNAMIC = {
    *("__import__", "eval", "exec", "compile", "globals", "vars"),
    *("__builtins__", "__loader__", "__spec__"),
}
FILE_METHODS = {
    *("open", "read_text", "read_bytes", "write_text", "write_bytes", "unlink", "mkdir"),
    *("iterdir", "tofile", "stat", "fdopen"),
}
NUMPY_FILES = {
    *("load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt"),
    *("fromfile", "fromregex", "memmap", "DataSource"),
}
SEEDED = {"default_rng", "SeedSequence", "PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"}
TOLD_NO_TIME = re.compile(
    r"(time\.(time|time_ns|localtime|gmtime|ctime|asctime|strftime|clock_gettime(_ns)?)"
    r"|datetime\.(datetime\.(now|utcnow|today)|date\.today))$"
)
CHANCE = re.compile(r"(random|secrets)\.|uuid\.uuid[14]$|os\.(urandom|getrandom)$")
NAMES_CLOCK = re.compile(
    r"^\s*(from|import)\s.*\b(date)?time\b|['\"](date)?time['\"]", re.MULTILINE
)
SILENCED = re.compile(r"#\s*(?:type|pyright):\s*ignore(?:\[([^\]]*)\])?")


RULES = {
    "import": "a pure room imports what is on its list",
    "dynamic-import": "a pure room imports by statements alone",
    "other-verb": "no verb of `decide` knows another",
    "outside": "a pure room reads and writes nothing",
    "chance": "a pure room draws from a generator with a seed, in `sim` alone",
    "clock": "wall time is read in `clock`, elapsed time where it is listed",
    "set-order": "the order of a set never gets out",
    "hash-order": "nothing is ordered by `hash()` or `id()`",
    "view-changed": "a decider changes nothing of the view",
    "silenced": "no complaint of the type checker that could hide such a change is silenced",
}

Said = tuple[int, str, str]
"""A line, the name of the rule it breaks, and what it does."""


@dataclass(frozen=True, order=True)
class Breach:
    """One line that breaks one rule."""

    place: str
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}:{self.line}: {self.rule}: {self.what}"


def read(root: Path) -> list[Module]:
    """Parse the source files below a package folder that any rule is about."""
    paths = sorted(root.rglob("*.py"))
    return [Module(path, root) for path in paths if concerns(path, root)]


def concerns(path: Path, root: Path) -> bool:
    """Whether a file stands in a pure room, or names a clock."""
    return path.relative_to(root).parts[0] in ROOMS or bool(NAMES_CLOCK.search(path.read_text()))


def breaches(modules: Sequence[Module], only: Sequence[Module] | None = None) -> list[Breach]:
    """Return every breach in these modules, or in some of them that may name the others."""
    kinds = Kinds([module for module in modules if module.room in ROOMS])
    found: list[Breach] = []
    for module in modules if only is None else only:
        said = [*_clocks(module)]
        if module.room in ROOMS:
            said += [*_imports(module), *_silenced(module), *_names(module, kinds)]
            said += [*set_iteration(module, kinds), *ordered_by_identity(module, kinds)]
        if module.room == "decide":
            said += view_changed(module, kinds)
        found += [Breach(module.place, line, rule, what) for line, rule, what in said]
    return sorted(set(found))


def imported_modules(module: Module) -> Iterator[tuple[int, str]]:
    """Yield every module that a file names in an import, with the line."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                yield node.lineno, each.name
        elif isinstance(node, ast.ImportFrom):
            source = module.absolute(node)
            yield node.lineno, source
            if source == "tenfold" or source.startswith("tenfold."):
                for each in node.names:
                    yield node.lineno, f"{source}.{each.name}"


def _imports(module: Module) -> Iterator[Said]:
    for line, name in imported_modules(module):
        parts = name.split(".")
        if parts[0] != "tenfold":
            if name not in IMPORTS[module.room]:
                yield line, "import", f"`{name}` is not on the list of `{module.room}`"
            continue
        if len(parts) > 1 and parts[1] not in BELOW[module.room] and parts[1].islower():
            yield line, "import", f"`{name}` is no room that `{module.room}` may use"
        yield from _other_verb(module, line, parts)
    for node in module.nodes:
        match node:
            case ast.Constant(value=str(text)) if re.fullmatch(r"tenfold(\.\w+)+(:\w+)?", text):
                yield node.lineno, "dynamic-import", f'"{text}" names a module as text'
            case _:
                pass


def _other_verb(module: Module, line: int, parts: Sequence[str]) -> Iterator[Said]:
    mine = module.name.split(".")
    if module.room != "decide" or len(mine) < 3 or parts[1:2] != ["decide"] or len(parts) < 3:
        return
    if parts[2] != mine[2]:
        yield line, "other-verb", f"`decide.{mine[2]}` may not know `decide.{parts[2]}`"


def _clocks(module: Module) -> Iterator[Said]:
    """Wall time is read in `clock`; elapsed time also where it is listed."""
    if module.room == "clock":
        return
    for node in module.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            named = {each.name for each in node.names} if isinstance(node, ast.Import) else set()
            source = node.module if isinstance(node, ast.ImportFrom) else None
            if (source == "time" or "time" in named) and module.room not in ELAPSED:
                yield node.lineno, "clock", f"`{module.room}` may not measure time"
        elif isinstance(node, ast.Attribute | ast.Name):
            name = module.dotted(node) or ""
            if TOLD_NO_TIME.match(name) and module.place not in WALL_TIME:
                yield node.lineno, "clock", f"`{name}` reads wall time; `clock` alone may"
        elif isinstance(node, ast.Call) and _asks_for_clock(node):
            yield node.lineno, "clock", "a clock is imported by its name as text"


def _asks_for_clock(call: ast.Call) -> bool:
    match call:
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr=name),
            args=[ast.Constant(value="time" | "datetime"), *_],
        ):
            return name in ("__import__", "import_module")
        case _:
            return False


def _silenced(module: Module) -> Iterator[Said]:
    for number, line in enumerate(module.text.splitlines(), start=1):
        for match in SILENCED.finditer(line):
            codes = {each.strip() for each in (match[1] or "everything").split(",")}
            for code in sorted(codes - SUPPRESSED):
                yield number, "silenced", f"`{code}` may hide a change of what is read-only"


def _names(module: Module, kinds: Kinds) -> Iterator[Said]:
    for node in module.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if module.scope(node).holder(node.id) is None:
                yield from _builtin(node)
            yield from _reached(module, node)
        elif isinstance(node, ast.Attribute):
            yield from _reached(module, node)
            yield from _member(module, node, kinds)


def _builtin(node: ast.Name) -> Iterator[Said]:
    if node.id in OUTSIDE:
        yield node.lineno, "outside", f"`{node.id}` reaches outside"
    elif node.id in DYNAMIC:
        yield node.lineno, "dynamic-import", f"`{node.id}` reaches what no import names"
    elif node.id == "hash":
        yield node.lineno, "hash-order", "`hash` of text is another in every process"


def _member(module: Module, node: ast.Attribute, kinds: Kinds) -> Iterator[Said]:
    parent = module.parent(node)
    is_called = isinstance(parent, ast.Call) and parent.func is node
    if node.attr in FILE_METHODS and is_called and not _is_ours(module, node.value, kinds):
        yield node.lineno, "outside", f"`.{node.attr}()` reaches a file"
    elif node.attr == "__hash__":
        yield node.lineno, "hash-order", "`hash` of text is another in every process"
    elif node.attr in ("__globals__", "__builtins__", "__subclasses__", "__loader__"):
        yield node.lineno, "dynamic-import", f"`{node.attr}` reaches what no import names"


def _is_ours(module: Module, node: ast.expr, kinds: Kinds) -> bool:
    """Whether it is an object of a class of a pure room, whose methods are read where they are."""
    kind = kinds.of(node, module.scope(node))
    return kind is not None and kind.name == "object"


def _reached(module: Module, node: ast.Name | ast.Attribute) -> Iterator[Said]:
    name = module.dotted(node)
    if name is None:
        return
    parent = module.parent(node)
    call = parent if isinstance(parent, ast.Call) and parent.func is node else None
    last = name.rpartition(".")[2]
    if CHANCE.match(name):
        yield node.lineno, "chance", f"`{name}` cannot be repeated"
    elif name.startswith("numpy.random"):
        yield from _numpy_random(module, node, name, call)
    elif name == "numpy.datetime64":
        if call is None or not _is_fixed_date(call):
            yield node.lineno, "clock", "`datetime64` may be asked for now"
    elif name.startswith("numpy.") and last in NUMPY_FILES:
        yield node.lineno, "outside", f"`{name}` reaches a file"
    elif name.startswith("numpy.ctypeslib"):
        yield node.lineno, "outside", f"`{name}` loads a library"


def _numpy_random(
    module: Module, node: ast.Name | ast.Attribute, name: str, call: ast.Call | None
) -> Iterator[Said]:
    last = name.rpartition(".")[2]
    if isinstance(module.parent(node), ast.Attribute) and name == "numpy.random":
        return
    if module.room != "sim":
        yield node.lineno, "chance", f"`{name}`: only `sim` draws, from a generator with a seed"
    elif last in ("Generator", "BitGenerator"):
        return
    elif last not in SEEDED or call is None or not _has_seed(call):
        yield node.lineno, "chance", f"`{name}` without a seed cannot be repeated"


def _has_seed(call: ast.Call) -> bool:
    given = [*call.args, *(each.value for each in call.keywords)]
    return bool(given) and not any(
        isinstance(each, ast.Constant) and each.value is None for each in given
    )


def _is_fixed_date(call: ast.Call) -> bool:
    match call.args:
        case [ast.Constant(value=str(text)), *_]:
            return text[:1].isdigit()
        case [ast.Constant(value=int()), *_]:
            return True
        case _:
            return False
