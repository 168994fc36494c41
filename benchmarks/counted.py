"""Count what a source tree is made of: `./dev count`, alone or beside another tree.

./dev count                          this tree
./dev count --tree ../before         another tree first, then this one
./dev count --install                also the size of an installed wheel (needs an index)
./dev count --json                   the same figures, with every name behind them
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple

import msgspec
import tomli

ROOT = Path(__file__).parents[1]
FOLDER_MODULES_MAX = 20
PREFIX_FILES = 3
SHARED_FIELDS = 5
STRUCT_BASES = ("Struct", "NamedTuple")
Which = Literal["loaded", "typed", "anywhere"]
"""Imports that run when a module is loaded, those for types too, or those in functions too."""


class Module(NamedTuple):
    name: str
    path: Path
    tree: ast.Module
    lines: int


class Pair(NamedTuple):
    """Two structs with fields of the same name and type."""

    one: str
    other: str
    fields: int


class Counted(NamedTuple):
    src_lines: int
    wheel_lines: int
    test_lines: int
    modules: int
    folders_above_20: dict[str, int]
    largest_folder: tuple[str, int]
    prefixes: dict[str, int]
    """Folder and prefix, where three or more files of a folder share one."""
    cycles: list[list[str]]
    """Groups of modules that import each other when they are loaded."""
    cycles_with_types: list[list[str]]
    """The same with imports under TYPE_CHECKING."""
    cycles_anywhere: list[list[str]]
    """The same with imports inside functions as well."""
    structs: int
    shared_structs: list[str]
    shared_pairs: list[Pair]
    help_s: float
    installed_mb: float | None = None
    installed_packages_mb: dict[str, float] | None = None


def count(tree: Path, *, repeat: int = 5, install: bool = False) -> Counted:
    modules = list(modules_of(tree / "src"))
    paths = [module.path for module in modules]
    folders = modules_by_folder(paths, tree / "src")
    pairs = shared_pairs(modules)
    packages = installed_mb(tree) if install else None
    return Counted(
        src_lines=sum(module.lines for module in modules),
        wheel_lines=sum(_lines(path) for path in wheel_files(tree)),
        test_lines=sum(
            _lines(path) for part in ("tests", "benchmarks") for path in (tree / part).rglob("*.py")
        ),
        modules=len(modules),
        folders_above_20={
            name: size for name, size in folders.items() if size > FOLDER_MODULES_MAX
        },
        largest_folder=max(folders.items(), key=lambda item: item[1]),
        prefixes=shared_prefixes(paths, tree / "src"),
        cycles=cycles(imports(modules, "loaded")),
        cycles_with_types=cycles(imports(modules, "typed")),
        cycles_anywhere=cycles(imports(modules, "anywhere")),
        structs=sum(1 for _ in structs(modules)),
        shared_structs=sorted({name for pair in pairs for name in (pair.one, pair.other)}),
        shared_pairs=pairs,
        help_s=help_s(tree, repeat),
        installed_mb=None if packages is None else round(sum(packages.values()), 1),
        installed_packages_mb=packages,
    )


def modules_of(src: Path) -> Iterator[Module]:
    for path in sorted(src.rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text()
        yield Module(name, path, ast.parse(text), len(text.splitlines()))


def wheel_files(tree: Path) -> list[Path]:
    """Return the Python files that the build packs into the wheel."""
    settings = tomli.loads((tree / "pyproject.toml").read_text())
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return [path for package in packages for path in sorted((tree / package).rglob("*.py"))]


def modules_by_folder(paths: Iterable[Path], src: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in paths:
        if path.name != "__init__.py":
            folder = str(path.parent.relative_to(src))
            found[folder] = found.get(folder, 0) + 1
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def shared_prefixes(paths: Iterable[Path], src: Path) -> dict[str, int]:
    """Return `folder/prefix_` of files that share the first word of their names."""
    found: dict[str, int] = {}
    for path in paths:
        stem = path.stem
        if stem.startswith("_"):
            continue
        key = f"{path.parent.relative_to(src)}/{stem.split('_')[0]}"
        found[key] = found.get(key, 0) + 1
    many = {f"{key}_": size for key, size in found.items() if size >= PREFIX_FILES}
    return dict(sorted(many.items(), key=lambda item: (-item[1], item[0])))


def imports(modules: Sequence[Module], which: Which) -> dict[str, list[str]]:
    """Return which modules each module imports."""
    names = {module.name for module in modules}
    found: dict[str, list[str]] = {}
    for module in modules:
        targets: list[str] = []
        for node in _statements(module.tree, which):
            if isinstance(node, ast.Import):
                targets += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = _base(module, node)
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    targets.append(inner if inner in names else base)
        found[module.name] = [name for name in dict.fromkeys(targets) if name in names]
    return found


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    kept = len(parts) - node.level + (module.path.name == "__init__.py")
    return ".".join([*parts[:kept], *([node.module] if node.module else [])])


def _statements(tree: ast.AST, which: Which) -> Iterator[ast.AST]:
    """Yield what runs when a module is loaded; with `typed` or `anywhere`, more than that."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and which != "anywhere":
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for one in node.orelse if which == "loaded" else [*node.body, *node.orelse]:
                yield one
                yield from _statements(one, which)
            continue
        yield from _statements(node, which)


def cycles(graph: dict[str, list[str]]) -> list[list[str]]:
    """Return groups of modules each of which reaches all others of its group."""
    reached = {name: _reached(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph
    }
    return sorted((list(group) for group in groups if len(group) > 1), key=lambda g: (-len(g), g))


def _reached(graph: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = list(graph[start])
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += graph[name]
    return found


def structs(modules: Sequence[Module]) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """Yield the classes that hold data, with the names and types of their own fields."""
    known = set(STRUCT_BASES)
    classes = [
        (module, node)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    ]
    # A subclass of a struct is one too, wherever its base is declared.
    while more := {node.name for _, node in classes if _bases(node) & known} - known:
        known |= more
    for module, node in classes:
        decorators = [ast.unparse(one) for one in node.decorator_list]
        if _bases(node) & known or any("dataclass" in one for one in decorators):
            yield f"{module.name}.{node.name}", _fields(node)


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}


def _fields(node: ast.ClassDef) -> set[tuple[str, str]]:
    return {
        (one.target.id, ast.unparse(one.annotation).strip("'\""))
        for one in node.body
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and "ClassVar" not in ast.unparse(one.annotation)
    }


def shared_pairs(modules: Sequence[Module]) -> list[Pair]:
    found = list(structs(modules))
    pairs = [
        Pair(one, other, len(fields & others))
        for (one, fields), (other, others) in combinations(found, 2)
        if len(fields & others) >= SHARED_FIELDS
    ]
    return sorted(pairs, key=lambda pair: (-pair.fields, pair))


def help_s(tree: Path, repeat: int) -> float:
    """Return the quickest of some runs of `tenfold --help`."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    words = [sys.executable, "-m", "tenfold", "--help"]
    took: list[float] = []
    for _ in range(repeat):
        start = perf_counter()
        subprocess.run(words, cwd="/", env=environment, capture_output=True, check=True)
        took.append(perf_counter() - start)
    return round(min(took), 3)


def installed_mb(tree: Path) -> dict[str, float]:
    """Install the tree without extras in an empty environment; return megabytes by package."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder, "bin", "python")
        options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
        site = Path(
            subprocess.run(
                [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
        )
        before = {path.name for path in site.iterdir()}
        subprocess.run([python, "-m", "pip", "install", *options, str(tree)], check=True)
        sizes: dict[str, int] = {}
        for path in site.iterdir():
            if path.name not in before:
                name = path.name.split("-")[0].removesuffix(".libs").removesuffix(".py")
                sizes[name] = sizes.get(name, 0) + _bytes(path)
    megabytes = {name: round(size / 1e6, 1) for name, size in sizes.items()}
    return dict(sorted(megabytes.items(), key=lambda item: -item[1]))


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(one.stat().st_size for one in files if one.is_file() and not one.is_symlink())


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def rows(found: Counted) -> dict[str, str]:
    """Return the figures as they are printed."""
    folder, size = found.largest_folder
    heaviest = list((found.installed_packages_mb or {}).items())[:3]
    return {
        "lines in src": f"{found.src_lines:,}",
        "lines in the wheel": f"{found.wheel_lines:,}",
        "lines in tests and benchmarks": f"{found.test_lines:,}",
        "modules": f"{found.modules:,}",
        "largest folder": f"{size} ({folder})",
        f"folders above {FOLDER_MODULES_MAX} modules": str(len(found.folders_above_20)),
        f"prefixes of {PREFIX_FILES} or more files": str(len(found.prefixes)),
        "import cycles": str(len(found.cycles)),
        "import cycles, types included": str(len(found.cycles_with_types)),
        "import cycles, functions included": str(len(found.cycles_anywhere)),
        "structs": f"{found.structs:,}",
        f"structs that share {SHARED_FIELDS} or more fields": str(len(found.shared_structs)),
        "`tenfold --help`, best of runs": f"{found.help_s:.2f} s",
        "installed, with dependencies": "not measured (--install)"
        if found.installed_mb is None
        else f"{found.installed_mb:,.0f} MB ({', '.join(f'{n} {mb:.0f}' for n, mb in heaviest)})",
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev count", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--tree", type=Path, action="append", default=[], help="another tree")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--install", action="store_true", help="measure an installed wheel too")
    parser.add_argument("--repeat", type=int, default=5, help="runs of `tenfold --help`")
    asked = parser.parse_args()
    trees = [*(tree.resolve() for tree in asked.tree), ROOT]
    counted = [count(tree, repeat=asked.repeat, install=asked.install) for tree in trees]
    names = [tree.name for tree in trees]
    if len(set(names)) < len(names):
        names = [str(tree) for tree in trees]
    if asked.json:
        made = {name: one._asdict() for name, one in zip(names, counted, strict=True)}
        print(msgspec.json.format(msgspec.json.encode(made)).decode())
        return
    tables = [rows(one) for one in counted]
    label = max(map(len, tables[0]))
    columns = [
        [f"{cell:>{max(map(len, [name, *table.values()]))}}" for cell in (name, *table.values())]
        for name, table in zip(names, tables, strict=True)
    ]
    for title, *cells in zip(["", *tables[0]], *columns, strict=True):
        print(f"{title:{label}}  {'  '.join(cells)}")


if __name__ == "__main__":
    main()
