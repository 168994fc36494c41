"""Judge some made fleets and keep their files: `--only NAME --seed N --keep DIR`."""

import argparse
import sys
from pathlib import Path

from benchmarks.grow.independent.catalogue import KINDS
from benchmarks.grow.independent.judge import judge_all, misses, table


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grow.independent")
    parser.add_argument(
        "--only", action="append", default=[], choices=list(KINDS), help="kind of fleet"
    )
    parser.add_argument(
        "--seed", action="append", default=[], type=int, help="seed (default: its usual seeds)"
    )
    parser.add_argument(
        "--keep", type=Path, help="folder to keep the files in; `command` shows how to ask"
    )
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args(words)
    findings = judge_all(chosen.only, chosen.seed, chosen.keep, chosen.workers)
    print(
        "\n".join(
            [
                *misses(findings, str(chosen.keep or "DIR")),
                "",
                *table(findings, "layer"),
                "",
                *table(findings, "item"),
            ]
        )
    )
    return 1 if any(one.wrong for one in findings) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
