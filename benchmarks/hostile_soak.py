"""The attacks of `tests/hostile` at full size: every field with every value, many more files.

After each hostile request the control plane is looked at. Hypothesis draws so many files for each
reader as asked.
"""

import argparse
import os
import subprocess
import sys

FILES = 2_000
HOURS_MOST = 6


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev soak hostile", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help="drawn for each reader")
    parser.add_argument("--only", default="", help="run the tests whose name contains this")
    asked = parser.parse_args(words)
    command = [sys.executable, "-m", "pytest", "-n0", "tests/hostile", "--durations=10"]
    command += ["-o", f"timeout={HOURS_MOST * 3_600}", *(["-k", asked.only] if asked.only else [])]
    sizes = {"TENFOLD_HOSTILE": "all", "TENFOLD_FUZZ": str(asked.files)}
    return subprocess.run(command, env={**os.environ, **sizes}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
