"""The page on policies lists which policy uses which key, as in the code."""

import re
from pathlib import Path

from tenfold.decide.place.job_keys import KEY_EFFECTS, POLICIES_BY_KEY

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "policies.md"
HEAD = "| key | used by | effect |\n|---|---|---|\n"


def table() -> str:
    rows = [
        f"| `{key}` | {', '.join(f'`{name}`' for name in names)} | {KEY_EFFECTS[key]} |\n"
        for key, names in POLICIES_BY_KEY.items()
    ]
    return HEAD + "".join(rows)


def test_the_table_of_keys_is_that_of_the_code():
    assert table() in PAGE.read_text(), (
        "write it anew: .venv/bin/python tests/docs/test_policies_page.py"
    )


if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(re.sub(re.escape(HEAD) + r"(?:\|.*\n)*", lambda _: table(), text))
