"""The same facts, byte for byte, however Python hashes its strings."""

import os
import subprocess
import sys
from functools import cache

import pytest

from tenfold.model.policy.policy import POLICIES, PolicyName

SCRIPT = """
from tenfold.model.policy.policy import POLICIES
from tests.rigs.soak import soak_one
for name in POLICIES:
    print(name, *(soak_one(seed, name, every=1_000).digest for seed in range(4)))
"""


@cache
def digests(hash_seed: str) -> dict[str, str]:
    """Digests of all facts of four worlds, by policy, in a process with this hash seed."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split(maxsplit=1) for line in done.stdout.splitlines())
    return {name: rest for name, rest in rows}


@pytest.mark.parametrize("name", POLICIES)
def test_the_facts_do_not_depend_on_the_hash_seed(name: PolicyName):
    assert digests("1")[name] == digests("4321")[name]
