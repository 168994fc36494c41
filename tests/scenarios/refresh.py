"""Write the golden runs anew, after a change that was meant to change decisions.

    .venv/bin/python tests/scenarios/refresh.py

Read the difference before you commit it: every figure that moved needs a reason.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from scenarios.scenario import GOLDEN, SCENARIOS, golden_file, golden_text

if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for scenario in SCENARIOS:
        golden_file(scenario).write_text(golden_text(scenario))
        print(golden_file(scenario).read_text())
