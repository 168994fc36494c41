"""The attacks of `tests/hostile` at full size: every field with every value, many more files.

After each hostile request the control plane is looked at. Hypothesis draws so many files for each
reader as asked, and fewer where reading one takes long. Parts run side by side, one per core, and
each tells every half minute how far it is. The work is counted in requests and files, so it is the
same on every machine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.rigs.hostile.progress import VARIABLE, tell

FILES = 1_000
HOURS_MOST = 6
LOOK_S = 0.5
SAY_S = 30.0
TAIL = 60
"""Lines of a part that are shown when it has failed."""
ROOT = Path("tests/hostile")
PARTS = {
    "requests": [ROOT / "requests"],
    "readers": [ROOT / "files" / "test_readers.py"],
    "stored": [ROOT / "files" / "test_stored_bytes.py", ROOT / "files" / "test_deep_nesting.py"],
    "jobs": [ROOT / "jobs", ROOT / "journal", ROOT / "test_rig.py", ROOT / "test_terminals.py"],
}
"""The longest first, so that the cores finish together."""
NOTHING_FOUND = 5
"""What pytest exits with when no test has the name that was asked for."""


class Part:
    """One part, as a process of its own."""

    def __init__(self, name: str, folder: Path, asked: argparse.Namespace) -> None:
        self.name = name
        self._log, self._told = folder / f"{name}.log", folder / f"{name}.told"
        self._told.touch()
        command = [sys.executable, "-m", "pytest", "-n0", *map(str, PARTS[name])]
        command += ["-p", "benchmarks.hostile_soak", "--durations=5"]
        command += ["-o", f"timeout={HOURS_MOST * 3_600}"]
        command += ["-k", asked.only] if asked.only else []
        sizes = {"TENFOLD_HOSTILE": "all", "TENFOLD_FUZZ": str(asked.files)}
        env = {**os.environ, **sizes, VARIABLE: str(self._told)}
        self._start_s = monotonic()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, env=env, stdout=log, stderr=log)

    def result(self) -> int | None:
        """Return the status it ended with; None while it runs."""
        found = self._process.poll()
        return 0 if found == NOTHING_FOUND else found

    def line(self) -> str:
        """Return how far it is."""
        told = self._told.read_text().splitlines()
        took_s, tests = monotonic() - self._start_s, sum(one.startswith("test ") for one in told)
        last = f"; {told[-1].removeprefix('test ')}" if told else ""
        return f"{took_s:5.0f} s  {self.name}: {tests:,} tests done{last}"

    def end(self) -> str:
        """Return the end of what it printed."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-TAIL:])

    def durations(self) -> list[str]:
        """Return its slowest tests."""
        return [line for line in self._log.read_text().splitlines() if "s call " in line][:5]

    def stop(self) -> None:
        """End it, if it still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev soak hostile", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help="drawn for each reader")
    parser.add_argument("--only", default="", help="run the tests whose name contains this")
    parser.add_argument("--part", choices=PARTS, action="append", help="run this part alone")
    asked = parser.parse_args(words)
    waiting, running = list(asked.part or PARTS), list[Part]()
    failed: list[str] = []
    said_s = monotonic()
    with tempfile.TemporaryDirectory(prefix="tenfold-soak-") as folder:
        try:
            while waiting or running:
                while waiting and len(running) < (os.cpu_count() or 1):
                    running.append(Part(waiting.pop(0), Path(folder), asked))
                sleep(LOOK_S)
                if monotonic() - said_s > SAY_S:
                    said_s = monotonic()
                    print(*(part.line() for part in running), sep="\n", flush=True)
                for part in [one for one in running if one.result() is not None]:
                    running.remove(part)
                    print(part.line(), *part.durations(), sep="\n", flush=True)
                    if part.result():
                        failed.append(part.name)
                        print(part.end(), flush=True)
        finally:
            for part in running:
                part.stop()
    print(f"failed: {', '.join(failed)}" if failed else "held: every attack")
    return 1 if failed else 0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tell that a test has ended; this module is a plugin of the tests that it starts."""
    if report.when == "call":
        tell(f"test {report.nodeid.rpartition('::')[2]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
