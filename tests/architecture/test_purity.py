"""The core and the simulator are pure, and the rules that say so can fail.

Every violation below stands alone in a file of its own, planted beside the real sources, and must
be caught by the rule that is named; what only looks like one must pass.
"""

from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

from architecture.purity.allowed import ELAPSED, WALL_TIME
from architecture.purity.rules import RULES, breaches, imported_modules, read
from architecture.purity.sources import Module

PACKAGE = Path(__file__).parents[2] / "src" / "tenfold"
VIEW = "from tenfold.fleet.fleet import FleetView\n"


@cache
def sources() -> list[Module]:
    return read(PACKAGE)


@cache
def view_modules() -> list[Module]:
    return [Module(PACKAGE / "fleet" / name, PACKAGE) for name in ("fleet.py", "view.py")]


def planted(folder: Path, place: str, text: str) -> Module:
    path = folder / "tenfold" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return Module(path, folder / "tenfold")


def rules_broken(folder: Path, place: str, text: str) -> set[str]:
    module = planted(folder, place, text)
    return {each.rule for each in breaches([*view_modules(), module], [module])}


def test_no_source_breaks_a_rule_of_purity():
    assert [str(each) for each in breaches(sources())] == []


def test_every_exception_is_needed():
    used = {module.place for module in sources() if "time" in dict.fromkeys(_names(module))}
    assert [place for place in WALL_TIME if place not in used] == []
    rooms = {place.split("/")[0] for place in used}
    assert [room for room in ELAPSED if room not in rooms] == []


def _names(module: Module) -> list[str]:
    return [name for _, name in imported_modules(module)]


VIOLATIONS: dict[str, tuple[str, str, str]] = {
    "open in fleet": ("outside", "fleet/planted.py", "rows = open('fleet.toml').readlines()"),
    "open in decide": ("outside", "decide/place/planted.py", "with open('a') as file:\n    pass"),
    "open by another name": ("outside", "engine/planted.py", "reader = open\nreader('a')"),
    "print in model": ("outside", "model/planted.py", "print('hello')"),
    "Path.open": ("import", "model/planted.py", "from pathlib import Path\nPath('a').open()"),
    "read_text of what is handed in": (
        "outside",
        "physics/planted.py",
        "def read(path):\n    return path.read_text()",
    ),
    "os in fleet": ("import", "fleet/planted.py", "import os\nos.listdir('.')"),
    "environ in physics": ("import", "physics/planted.py", "from os import environ"),
    "np.load": ("outside", "physics/planted.py", "import numpy as np\nrows = np.load('a.npy')"),
    "secrets in decide": ("import", "decide/place/planted.py", "import secrets"),
    "httpx in engine": ("import", "engine/planted.py", "import httpx"),
    "sys in model": ("import", "model/planted.py", "import sys\nsys.argv"),
    "importlib in the core": (
        "import",
        "decide/place/planted.py",
        "from importlib import import_module\nimport_module('time')",
    ),
    "import within a function": (
        "import",
        "engine/planted.py",
        "def later():\n    import logging\n    return logging",
    ),
    "import for types alone": (
        "import",
        "fleet/planted.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import asyncio",
    ),
    "a submodule that is not on the list": (
        "import",
        "physics/planted.py",
        "import numpy.lib.npyio",
    ),
    "sim -> clock": ("import", "sim/planted.py", "from tenfold.clock.wall import now_ms"),
    "sim -> decide": ("import", "sim/planted.py", "from tenfold.decide.place import after"),
    "core -> live, relative": ("import", "engine/planted.py", "from ..live import attempts"),
    "__import__": ("dynamic-import", "sim/planted.py", "clock = __import__('time').time"),
    "eval": ("dynamic-import", "model/planted.py", "eval('1')"),
    "a module named as text": (
        "dynamic-import",
        "engine/planted.py",
        "EXECUTOR = 'tenfold.live.local:LocalExecutor'",
    ),
    "builtins by attribute": (
        "dynamic-import",
        "model/planted.py",
        "def f(): ...\nf.__globals__['open']",
    ),
    "default_rng without a seed": (
        "chance",
        "sim/planted.py",
        "import numpy as np\ndraw = np.random.default_rng()",
    ),
    "default_rng seeded with None": (
        "chance",
        "sim/planted.py",
        "from numpy.random import default_rng\ndraw = default_rng(seed=None)",
    ),
    "global draws of numpy": (
        "chance",
        "sim/planted.py",
        "import numpy as np\ndraw = np.random.rand(3)",
    ),
    "numpy's draws by another name": (
        "chance",
        "sim/planted.py",
        "import numpy as np\ndice = np.random\ndice.rand()",
    ),
    "a seeded generator in decide": (
        "chance",
        "decide/place/planted.py",
        "import numpy as np\ndraw = np.random.default_rng(1)",
    ),
    "random.randint in sim": ("chance", "sim/planted.py", "import random\nrandom.randint(1, 6)"),
    "random.random in model": ("chance", "model/planted.py", "from random import random\nrandom()"),
    "uuid4": ("chance", "engine/planted.py", "from uuid import uuid4\nuuid4()"),
    "np.datetime64 of now": (
        "clock",
        "engine/planted.py",
        "import numpy as np\nnow = np.datetime64('now')",
    ),
    "np.datetime64 of today": (
        "clock",
        "sim/planted.py",
        "from numpy import datetime64 as date\nnow = date('today', 's')",
    ),
    "time in decide": ("clock", "decide/place/planted.py", "import time\ntime.monotonic()"),
    "time in sim": ("clock", "sim/planted.py", "from time import perf_counter"),
    "date.today": ("clock", "model/planted.py", "from datetime import date\ndate.today()"),
    "time_ns in compose": ("clock", "compose/planted.py", "from time import time_ns\ntime_ns()"),
    "time_ns in server": ("clock", "server/planted.py", "import time\ntime.time_ns()"),
    "time.time in live": ("clock", "live/planted.py", "import time as t\nt.time()"),
    "perf_counter in study": ("clock", "study/planted.py", "from time import perf_counter"),
    "datetime.now in cli": (
        "clock",
        "cli/planted.py",
        "from datetime import UTC, datetime\ndatetime.now(UTC)",
    ),
    "a clock by its name as text": (
        "clock",
        "compose/planted.py",
        "import importlib\nimportlib.import_module('time')",
    ),
    "order by hash": (
        "hash-order",
        "decide/place/planted.py",
        "def rank(jobs):\n    return sorted(jobs, key=hash)",
    ),
    "spread by hash": ("hash-order", "engine/planted.py", "def f(job):\n    return hash(job) % 8"),
    "order by id": (
        "hash-order",
        "fleet/planted.py",
        "def rank(jobs):\n    return min(jobs, key=lambda job: (1, id(job)))",
    ),
    "id as a key": ("hash-order", "fleet/planted.py", "def f(jobs):\n    jobs.sort(key=id)"),
    "comparing a variable that holds an id": (
        "hash-order",
        "fleet/planted.py",
        "def f(a, b):\n    mine = id(a)\n    return mine < id(b)",
    ),
    "a loop over a set in engine": (
        "set-order",
        "engine/planted.py",
        "for one in {1, 2}:\n    pass",
    ),
    "a loop over a variable": (
        "set-order",
        "engine/planted.py",
        "def f(jobs):\n    seen = set(jobs)\n    return [job for job in seen]",
    ),
    "a loop over a parameter": (
        "set-order",
        "fleet/planted.py",
        "def f(jobs: frozenset[str] | None):\n    for job in jobs or ():\n        yield job",
    ),
    "a loop over an AbstractSet by alias": (
        "set-order",
        "model/planted.py",
        """
        from collections.abc import Set as AbstractSet
        Names = AbstractSet[str]
        def f(names: "Names"):
            return ", ".join(names)
        """,
    ),
    "a loop over an attribute": (
        "set-order",
        "decide/place/planted.py",
        """
        class Index:
            def __init__(self):
                self._away = set()
            def all(self):
                return list(self._away)
        """,
    ),
    "an attribute of another class": (
        "set-order",
        "sim/planted.py",
        """
        class Queue:
            nodes: frozenset[str]
        def f(queue: Queue):
            return {node: 1 for node in queue.nodes}
        """,
    ),
    "an attribute of what is not known": (
        "set-order",
        "sim/planted.py",
        """
        class Queue:
            nodes_shut_for_upkeep: frozenset[str]
        def f(queue):
            return [*queue.nodes_shut_for_upkeep]
        """,
    ),
    "the result of a method": (
        "set-order",
        "sim/planted.py",
        """
        class Queue:
            def wanted(self) -> set[str]: ...
            def first(self):
                return next(iter(self.wanted()))
        """,
    ),
    "sets in a dictionary": (
        "set-order",
        "fleet/planted.py",
        """
        def f(by_rack: dict[str, set[str]]):
            for rack, nodes in by_rack.items():
                for node in nodes:
                    yield rack, node
        """,
    ),
    "a defaultdict of sets": (
        "set-order",
        "fleet/planted.py",
        """
        from collections import defaultdict
        def f():
            found = defaultdict(set)
            return tuple(found["a"])
        """,
    ),
    "keys of two dictionaries": (
        "set-order",
        "engine/planted.py",
        "def f(a: dict[str, int], b: dict[str, int]):\n    return [x for x in a.keys() & b.keys()]",
    ),
    "a difference of sets": (
        "set-order",
        "engine/planted.py",
        "def f(a: set[int], b):\n    for x in a - b:\n        yield x",
    ),
    "pop of a set": ("set-order", "engine/planted.py", "def f(a: set[int]):\n    return a.pop()"),
    "unpacking of a set": (
        "set-order",
        "engine/planted.py",
        "def f(a: set[int]):\n    first, *rest = a\n    return first",
    ),
    "a sum over a set": ("set-order", "sim/planted.py", "def f(a: set[float]):\n    return sum(a)"),
    "ties in the order of a set": (
        "set-order",
        "decide/place/planted.py",
        "def f(jobs: set[str]):\n    return min(jobs, key=len)",
    ),
    "a set handed to what forgets that it is one": (
        "set-order",
        "engine/planted.py",
        """
        from collections.abc import Iterable
        def first(names: Iterable[str]): ...
        def f(a: set[str]):
            return first(names=a)
        """,
    ),
    "a set in a sentence": (
        "set-order",
        "engine/planted.py",
        "def f(a: set[str]):\n    return f'lost {a}'",
    ),
    "decide.place -> decide.recover": (
        "other-verb",
        "decide/place/planted.py",
        "from tenfold.decide.recover import lemons",
    ),
    "decide.shift -> decide.place, relative": (
        "other-verb",
        "decide/shift/planted.py",
        "def f():\n    from ..place.after import waits_for",
    ),
    "from tenfold.decide import another": (
        "other-verb",
        "decide/layout/planted.py",
        "from tenfold.decide import detect",
    ),
    "a view changed behind a type-ignore": (
        "view-changed",
        "decide/place/planted.py",
        f"{VIEW}def decide(view: FleetView):\n    view.pending['a'] = 1  # type: ignore",
    ),
    "a part of a view changed": (
        "view-changed",
        "decide/place/planted.py",
        f"{VIEW}def decide(view: FleetView):\n    waiting = view.pending\n    waiting.pop('a')",
    ),
    "an attribute of a view changed": (
        "view-changed",
        "decide/place/planted.py",
        f"""
        {VIEW}
        class Decider:
            def __init__(self, view: FleetView):
                self._view = view
            def decide(self):
                self._view.version += 1
        """.replace(f"        {VIEW}", f"        {VIEW.strip()}\n"),
    ),
    "a view made a fleet": (
        "view-changed",
        "decide/recover/planted.py",
        f"from typing import cast\n{VIEW}def f(view: FleetView):\n    cast('Fleet', view).apply(1)",
    ),
    "setattr on a view": (
        "view-changed",
        "decide/recover/planted.py",
        f"{VIEW}def f(view: FleetView):\n    object.__setattr__(view, 'version', 1)",
    ),
    "a type-ignore in decide": (
        "silenced",
        "decide/place/planted.py",
        "def decide(view):\n    view.version = 1  # type: ignore[misc]",
    ),
    "a pyright-ignore of everything": (
        "silenced",
        "fleet/planted.py",
        "def f(view):\n    view.version = 1  # pyright: ignore",
    ),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_planted_violation_is_caught_by_its_rule(tmp_path: Path, name: str):
    rule, place, text = VIOLATIONS[name]
    assert rule in rules_broken(tmp_path, place, text)


INNOCENT: dict[str, tuple[str, str]] = {
    "sorted over a set": (
        "engine/planted.py",
        "def f(a: set[str]):\n    for x in sorted(a):\n        yield x",
    ),
    "len, membership and comparison": (
        "fleet/planted.py",
        "def f(a: set[str], b: set[str]):\n    return len(a) > 1 and 'x' in a and a <= b",
    ),
    "any and all of a set": (
        "fleet/planted.py",
        "def f(a: set[int]):\n    return any(x > 1 for x in a) or all(x for x in a) or max(a)",
    ),
    "a set made of a set": (
        "decide/place/planted.py",
        """
        def f(a: set[int], b: set[int]):
            b.update(a)
            b.update(x + 1 for x in a)
            return {x + 1 for x in a} | frozenset(a) | a.union(b)
        """,
    ),
    "a set handed to what takes one": (
        "engine/planted.py",
        """
        from collections.abc import Set as AbstractSet
        def first(names: AbstractSet[str]): ...
        def f(a: set[str]):
            return first(a)
        """,
    ),
    "sorted of a comprehension over a set": (
        "decide/place/planted.py",
        "def f(a: set[int]):\n    return sorted(x + 1 for x in a), sorted(list(a))",
    ),
    "the same name in another function": (
        "engine/planted.py",
        """
        def f():
            seen = set()
            return len(seen)
        def g(seen: list[int]):
            return [x for x in seen]
        """,
    ),
    "the same attribute of another class": (
        "engine/planted.py",
        """
        class Queue:
            nodes: frozenset[str]
        class Fleet:
            nodes: tuple[str, ...]
        def f(fleet: Fleet):
            return list(fleet.nodes)
        """,
    ),
    "a dictionary used as an ordered set": (
        "engine/planted.py",
        "def f(jobs):\n    seen = dict.fromkeys(jobs)\n    return list(seen), list(seen.keys())",
    ),
    "id to look up": (
        "decide/place/planted.py",
        """
        def f(banks):
            left = {id(bank): 1 for bank in banks}
            for bank in banks:
                key = id(bank)
                if key in left and left[key]:
                    left[key] -= 1
            return left.get(id(banks[0]))
        """,
    ),
    "a method called open, and a field of the name": (
        "decide/place/planted.py",
        """
        class Window:
            def open(self): ...
        def f(window: Window, hash: str, open: bool):
            return window.open(), window.set_open(True), open, hash
        """,
    ),
    "a generator that is handed in": (
        "sim/planted.py",
        "import numpy as np\ndef f(draw: np.random.Generator):\n    return draw.random()",
    ),
    "a generator with a seed": (
        "sim/planted.py",
        "import numpy as np\ndef f(seed: int):\n"
        "    return np.random.default_rng(seed), np.random.Generator(np.random.PCG64(seed))",
    ),
    "a date that is stated": (
        "physics/planted.py",
        "import numpy as np\nnp.datetime64('2026-01-01')",
    ),
    "a parameter called time": ("model/planted.py", "def f(time):\n    return time.time()"),
    "dates without a clock in cli": (
        "cli/planted.py",
        "from datetime import UTC, datetime\ndef f(s):\n    return datetime.fromtimestamp(s, UTC)",
    ),
    "monotonic in server": ("server/planted.py", "from time import monotonic\nmonotonic()"),
    "wall time in clock": ("clock/planted.py", "import time\ntime.time_ns()"),
    "decide.place -> decide.place.quota": (
        "decide/place/planted.py",
        "from tenfold.decide.place.state import scheduler_state",
    ),
    "a copy of a part of a view": (
        "decide/place/planted.py",
        f"{VIEW}def f(view: FleetView):\n"
        "    waiting = dict(view.pending)\n    waiting.pop('a')\n    waiting['b'] = 1",
    ),
    "a private name of a neighbour": (
        "fleet/planted.py",
        "def f(fleet):\n    return fleet._index  # pyright: ignore[reportPrivateUsage]",
    ),
    "the name of a module in a sentence": (
        "model/planted.py",
        '"""See `tenfold.live`."""\nHINT = "try tenfold.live or tenfold.sim instead"',
    ),
}


@pytest.mark.parametrize("name", INNOCENT)
def test_what_only_looks_like_a_violation_passes(tmp_path: Path, name: str):
    place, text = INNOCENT[name]
    module = planted(tmp_path, place, text)
    assert [str(each) for each in breaches([*view_modules(), module], [module])] == []


def test_a_set_that_a_real_class_keeps_is_followed(tmp_path: Path):
    text = (PACKAGE / "fleet" / "topology" / "topology.py").read_text()
    loop = "\n\ndef planted(index: TopologyCapacity):\n    return list(index._closed)\n"
    assert rules_broken(tmp_path, "fleet/topology/topology.py", text) == set()
    assert rules_broken(tmp_path, "fleet/topology/topology.py", text + loop) == {"set-order"}


def test_every_rule_is_broken_by_something_planted():
    assert {rule for rule, _, _ in VIOLATIONS.values()} == set(RULES)
