"""Write what commands print now into the pages that show them.

    .venv/bin/python tests/docs/refresh.py                      all pages
    .venv/bin/python tests/docs/refresh.py docs/how-to/x.md     this one

Blocks that leave lines out with `...` keep as many lines before and after each of them
as they had. Read the difference before you commit it: it is what users will see.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs import generate_reference
from docs.console_blocks import (
    ANY_LINES,
    ROOT,
    Block,
    blocks,
    documents,
    matches,
    run,
)
from docs.page_session import PageSession, page_session, without_what_varies

PICTURE = "docs/images/research.svg"
PICTURED = "examples/research-256/fleet.toml"


def refresh(page: Path) -> None:
    text = page.read_text()
    lines = text.splitlines()
    moved = 0
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as parent,
        page_session(Path(parent)) as session,
    ):
        for block in blocks(text):
            new = _rewritten(block, session)
            if block.kind != "console":
                continue
            start = block.line + moved
            lines[start : start + len(block.lines)] = new
            moved += len(new) - len(block.lines)
    page.write_text("\n".join(lines) + "\n")


def _rewritten(block: Block, session: PageSession) -> list[str]:
    new: list[str] = []
    for place, (command, printed) in enumerate(session.play(block)):
        if place:
            new.append("")
        new.append(f"$ {command.text}")
        shown = command.shown
        is_same = matches(shown, printed) or (
            session.is_live and matches(without_what_varies(shown), without_what_varies(printed))
        )
        new.extend(shown if is_same else _cut(shown, printed))
    return new


def _cut(shown: list[str], printed: list[str]) -> list[str]:
    """Return new output, shortened where the old one was."""
    places = [place for place, line in enumerate(shown) if line.strip() == ANY_LINES]
    if not places:
        return printed
    head, tail = places[0], len(shown) - places[-1] - 1
    return [*printed[:head], ANY_LINES, *printed[len(printed) - tail :]]


if __name__ == "__main__":
    named = [Path(word) for word in sys.argv[1:]]
    if not named:
        for file, content in generate_reference.pages().items():
            (generate_reference.REFERENCE / file).write_text(content)
        run(f"tenfold fleet show {PICTURED} --svg {PICTURE} --force", ROOT)
    for document in named or documents():
        refresh(document)
