"""The counter counts what is planted."""

from pathlib import Path

import pytest

from benchmarks import counted
from benchmarks.counted import Pair, imports, modules_by_folder, modules_of

HOLDS = "    a: int\n    b: str\n    c: float\n    d: int\n    e: 'str'\n"
PLANTED = {
    "__init__.py": "",
    "one.py": "from typing import TYPE_CHECKING\nimport pack.two\n"
    "if TYPE_CHECKING:\n    from pack import four\n",
    "two.py": "from pack.three import x\n",
    "three.py": "from .one import y\n",
    "four.py": "from pack.one import z\n",
    "five.py": "def late():\n    from pack import six\n",
    "six.py": "import pack.five\n",
    "deep/__init__.py": "",
    "deep/job_a.py": f"from msgspec import Struct\nclass A(Struct, frozen=True):\n{HOLDS}",
    "deep/job_b.py": f"@dataclass(frozen=True)\nclass B:\n{HOLDS}    f: int = 3\n",
    "deep/job.py": "class C(NamedTuple):\n    a: int\n"
    "class D(C):\n    b: int\nclass E:\n    c: int\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in PLANTED.items():
        path = tmp_path / "src" / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.hatch.build.targets.wheel]\npackages = ["src/pack/deep"]\n'
    )
    return tmp_path


def test_cycles_are_found_as_loaded_as_typed_and_anywhere(tree: Path):
    modules = list(modules_of(tree / "src"))
    ring = ["pack.one", "pack.three", "pack.two"]
    assert counted.cycles(imports(modules, "loaded")) == [ring]
    assert counted.cycles(imports(modules, "typed")) == [["pack.four", *ring]]
    assert counted.cycles(imports(modules, "anywhere")) == [
        ["pack.four", *ring],
        ["pack.five", "pack.six"],
    ]


def test_structs_that_share_five_fields_are_a_pair(tree: Path):
    modules = list(modules_of(tree / "src"))
    assert [name.split(".")[-1] for name, _ in counted.structs(modules)] == ["C", "D", "A", "B"]
    assert counted.shared_pairs(modules) == [Pair("pack.deep.job_a.A", "pack.deep.job_b.B", 5)]


def test_folders_prefixes_and_lines_are_counted(tree: Path):
    src = tree / "src"
    paths = [module.path for module in modules_of(src)]
    assert modules_by_folder(paths, src) == {"pack": 6, "pack/deep": 3}
    assert counted.shared_prefixes(paths, src) == {"pack/deep/job_": 3}
    shipped = [path.name for path in counted.wheel_files(tree)]
    assert shipped == ["__init__.py", "job.py", "job_a.py", "job_b.py"]


def test_this_tree_has_no_import_cycle_at_load():
    modules = list(modules_of(counted.ROOT / "src"))
    assert counted.cycles(imports(modules, "loaded")) == []
