"""Give the batch jobs of a table a limit and a deadline, which generated work does not have.

    python examples/green-batch/add_deadlines.py generated.csv jobs.csv

A limit is half as long again as the job runs, in whole hours; a deadline is a day and a
half after submission, or twice the limit where that is later. Both are made up.
"""

import csv
import sys
from pathlib import Path

HOUR_S = 3_600


def main(source: Path, target: Path) -> None:
    """Write the table again with both columns filled for batch jobs."""
    with source.open(newline="") as lines, target.open("w", newline="") as out:
        reader = csv.DictReader(lines)
        names = [*dict.fromkeys([*(reader.fieldnames or ()), "limit_s", "deadline_s"])]
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        for row in reader:
            if row["qos"] == "batch":
                limit_s = -(-int(float(row["duration_s"]) * 1.5) // HOUR_S) * HOUR_S
                wait_s = max(36 * HOUR_S, 2 * limit_s)
                row |= {"limit_s": limit_s, "deadline_s": int(float(row["submit_s"])) + wait_s}
            writer.writerow(row)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
