"""Record the first ten minutes with Tenfold in a real terminal, and write the page that shows them.

    .venv/bin/python tests/docs/record_first_ten_minutes.py          record, and write the page
    .venv/bin/python tests/docs/record_first_ten_minutes.py --page   only write the page again

tmux runs a shell; commands are typed into it, and the text of its pane is read until the prompt is
back. What appears is stored with its time as an asciicast (version 2), for `asciinema play`, and
the page is made from that file alone. Names of this machine and tokens are replaced first.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CAST = ROOT / "docs" / "tutorials" / "first-ten-minutes.cast"
PAGE = CAST.with_suffix(".md")
WIDTH, HEIGHT = 100, 40
PROMPT = "$"
PAUSE_S = 0.2
MOST_S = 180.0
UP = "tenfold up --virtual-nodes 4"
ANSWERS = "Ctrl-C stops the control plane"
STEPS = (
    ("Start a control plane with four virtual nodes, and leave it running.", UP),
    ("In another terminal, look at the fleet.", "tenfold status"),
    ("Run a first job.", "tenfold job submit examples/jobs/hello.toml --follow"),
    ("Read its log again.", "tenfold job logs hello-1"),
    ("Run an array of ten jobs.", "tenfold job submit examples/jobs/sweep.toml --wait"),
    ("List what ran.", "tenfold job list --limit 4"),
    (
        "Run a command that fails. Its exit code is passed on.",
        "tenfold job run --name broken -- sh -c 'echo no such dataset; exit 3'; echo status $?",
    ),
    ("Show its details.", "tenfold job show broken-12"),
    (
        "Fill the fleet with one job of 32 GPUs.",
        "tenfold job submit --name train -N 4 --gpus-per-node 8 -- sleep 600",
    ),
    (
        "Submit another one, which has to wait.",
        "tenfold job submit --name eval -N 2 --gpus-per-node 8 -- echo done",
    ),
    ("Ask why.", "tenfold job why eval-14 --quick"),
    ("Cancel the first one.", "tenfold job cancel train-13"),
    ("The other one starts.", "tenfold job logs eval-14 --follow"),
    (
        "Ask what breaks first as one rack grows.",
        "tenfold grow examples/one-rack/fleet.toml --grow examples/one-rack/grow.toml"
        " --axis nodes | head -20",
    ),
    ("Look at the fleet once more, and stop the control plane.", "tenfold status"),
    ("Any running jobs would keep running.", "tenfold down"),
)
HEAD = """# The first ten minutes

Watch a first session with Tenfold, as it was recorded in a terminal: a control plane, a job, an \
array, a failure, a job that waits, and what breaks first.

To try it yourself, follow [Your first job](first-job.md). Replay \
[the recording](first-ten-minutes.cast) with `asciinema play`.
"""


class Event(NamedTuple):
    """What appeared in the terminal, and when; or a marker (`m`) that begins a step."""

    at_s: float
    kind: str
    text: str


class Terminal:
    """A tmux server of its own, with one session for each terminal."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "tmux"
        self._folder = folder / "tenfold"
        shutil.copytree(ROOT / "examples", self._folder / "examples")
        # Recorded as root, jobs run as the user of their team, who may write here as a reader's do.
        self._folder.chmod(0o777)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        kept = {key: value for key, value in os.environ.items() if "TENFOLD" not in key}
        self._environment = {
            **kept,
            "PATH": path,
            "NO_COLOR": "1",
            "TENFOLD_STATE_DIR": str(folder / "state"),
        }

    def open(self, name: str) -> None:
        """Open a terminal with a shell that reads no settings."""
        size = ("-x", str(WIDTH), "-y", str(HEIGHT))
        shell = "exec env PS1='$ ' bash --norc --noprofile"
        self._tmux("new-session", "-d", "-s", name, *size, "-c", str(self._folder), shell)
        while PROMPT not in self.text(name):
            time.sleep(PAUSE_S)

    def type(self, name: str, command: str) -> None:
        """Type a command and Enter, in an empty terminal."""
        self._tmux("send-keys", "-t", name, "C-l")
        while self.text(name) != PROMPT:
            time.sleep(PAUSE_S)
            self._tmux("clear-history", "-t", name)
        self._tmux("send-keys", "-t", name, "-l", command)
        self._tmux("send-keys", "-t", name, "Enter")

    def text(self, name: str) -> str:
        """Return what the terminal shows and showed, with wrapped lines joined."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", name).rstrip()

    def wait(self, name: str, last: str) -> Iterator[str]:
        """Yield what the terminal shows until its last line begins with a text."""
        ends = time.monotonic() + MOST_S
        while time.monotonic() < ends:
            text = self.text(name)
            yield text
            lines = text.splitlines()
            is_done = lines[-1:] == [last] if last == PROMPT else last in text
            if is_done and (last != PROMPT or len(lines) > 1):
                return
            time.sleep(PAUSE_S)
        raise SystemExit(f"no end of `{name}` within {MOST_S:g} s:\n{self.text(name)}")

    def close(self) -> None:
        """End the server with all its terminals."""
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", str(self._socket), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


def record() -> list[Event]:
    """Run the steps in a terminal; return what appeared."""
    if shutil.which("tmux") is None:
        raise SystemExit("error: tmux is not installed\nhint: apt-get install tmux")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        terminal = Terminal(folder)
        start = time.monotonic()
        events: list[Event] = []
        terminal.open("up")
        terminal.open("jobs")
        try:
            for note, command in STEPS:
                events.append(Event(time.monotonic() - start, "m", note))
                pane, last = ("up", ANSWERS) if command == UP else ("jobs", PROMPT)
                terminal.type(pane, command)
                events += _appeared(terminal.wait(pane, last), start, folder)
        finally:
            terminal.close()
    return events


def _appeared(texts: Iterator[str], start: float, folder: Path) -> Iterator[Event]:
    shown = ""
    for raw in texts:
        text = _presentable(raw, folder)
        if text.startswith(shown) and len(text) > len(shown):
            yield Event(time.monotonic() - start, "o", text[len(shown) :])
            shown = text
    yield Event(time.monotonic() - start, "o", "\n")


def _presentable(text: str, folder: Path) -> str:
    """Return text without names of this machine, tokens and ports."""
    host = re.escape(socket.gethostname())
    for pattern, shown in (
        (re.escape(str(folder / "state")), "~/.local/share/tenfold"),
        (re.escape(str(folder / "tenfold")), "~/tenfold"),
        (r"\btf_[\w-]+", "tf_..."),
        (rf"[\w.-]+@{host}\b", "ann@laptop"),
        (rf"(?<![\w-]){host}(?![\w-])", "laptop"),
    ):
        text = re.sub(pattern, shown, text)
    return text


def write_cast(events: list[Event]) -> None:
    """Write an asciicast, version 2."""
    header = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": "Tenfold: ten minutes"}
    lines = [json.dumps(header)]
    for at_s, kind, text in events:
        data = text.replace("\n", "\r\n") if kind == "o" else text
        lines.append(json.dumps([round(at_s, 1), kind, data]))
    CAST.write_text("\n".join(lines) + "\n")


def read_cast() -> list[Event]:
    """Read the events of the asciicast."""
    header, *lines = CAST.read_text().splitlines()
    assert json.loads(header)["version"] == 2, "an asciicast of version 2"
    return [
        Event(at_s, kind, data.replace("\r\n", "\n"))
        for at_s, kind, data in (json.loads(line) for line in lines)
    ]


def page() -> str:
    """Return the page that shows the asciicast."""
    parts = [HEAD]
    for at_s, note, text in _steps(read_cast()):
        minutes, seconds = divmod(int(at_s), 60)
        mark = f"<!-- not run in tests: recorded {minutes}:{seconds:02} after the start -->"
        parts.append(f"{note}\n\n{mark}\n\n```console\n{text}\n```\n")
    return "\n".join(parts)


def _steps(events: list[Event]) -> Iterator[tuple[float, str, str]]:
    starts = [place for place, event in enumerate(events) if event.kind == "m"]
    for start, end in zip(starts, [*starts[1:], len(events)], strict=True):
        text = "".join(event.text for event in events[start + 1 : end]).rstrip()
        shown = [line.rstrip() for line in text.removesuffix(f"\n{PROMPT}").splitlines()]
        yield events[start].at_s, events[start].text, "\n".join(shown).strip("\n")


if __name__ == "__main__":
    if "--page" not in sys.argv[1:]:
        write_cast(record())
    PAGE.write_text(page())
