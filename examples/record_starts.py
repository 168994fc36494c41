"""Give a table of jobs the starts that a kept simulation saw, as accounting would have them.

    python examples/record_starts.py work.csv run.jsonl history.csv

The first start of each job counts; one that never started has none. Such a history is
simulated, and says so where it is used: it shows how a real one is read, and proves nothing.
"""

import csv
import json
import sys
from pathlib import Path

SECOND_MS = 1_000


def first_starts(bundle: Path) -> dict[str, int]:
    """Return when each job of a bundle of `tenfold sim run` started first, in milliseconds."""
    starts: dict[str, int] = {}
    with bundle.open() as lines:
        for line in lines:
            if '"JobStarted"' in line:
                event = json.loads(line)
                starts.setdefault(event["job_id"], event["at_ms"])
    return starts


def main(jobs: Path, bundle: Path, target: Path) -> None:
    """Write the table again with the column `start_s`."""
    starts = first_starts(bundle)
    with jobs.open(newline="") as lines, target.open("w", newline="") as out:
        reader = csv.DictReader(lines)
        names = [*dict.fromkeys([*(reader.fieldnames or ()), "start_s"])]
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        for row in reader:
            started_ms = starts.get(row["job_id"])
            start_s = "" if started_ms is None else f"{started_ms // SECOND_MS}"
            writer.writerow({**row, "start_s": start_s})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
