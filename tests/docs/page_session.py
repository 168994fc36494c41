"""A page as a session: its blocks run in order, in one folder, with one shell and one Python.

The folder holds a copy of `examples/` and `./dev`. What a block exports, and the folder it changes
to, hold for the next one. `tenfold up` starts a control plane that stays until the page ends; its
state directory is empty, and its port is free. Ids of jobs are therefore the same each time. What
differs each time is not compared on such a page: times, ports, tokens, and names of this machine.
"""

import contextlib
import io
import json
import os
import re
import socket
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tenfold
from docs.console_blocks import (
    PROGRAMS,
    Block,
    Command,
    commands,
    environment,
    make_file,
    prepare,
    trimmed,
)
from patience import HANG_S

STATE_DIR = "TENFOLD_STATE_DIR"
SHOWN_STATE_DIR = "~/.local/share/tenfold"
SHOWN_FOLDER = "/srv/my-fleet"
SHOWN_HOST = "laptop"
SHOWN_ADDRESS = "127.0.0.1:7410"
SHOWN_GATEWAY = "127.0.0.1:7480"
_UP = re.compile(r"^(?:\./dev|tenfold) up\b(?P<options>[^#\n]*)", re.MULTILINE)
_ANSWERS = "Ctrl-C stops the control plane"
_GATEWAY = "gateway: http://"
_SHELL = """
if [ -e "$PAGE_STATE" ]; then . "$PAGE_STATE"; fi
trap 'export -p > "$PAGE_STATE"; printf "cd %q\\n" "$PWD" >> "$PAGE_STATE"' EXIT
wait_for() {
    until found=$(tenfold job show "$1") || return 1; [[ $found == *"): $2"* ]]; do sleep 0.1; done
}
"""
_VARIES = (
    (re.compile(r"\b\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?(?: UTC)?)?"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:h ?\d+m|m ?\d+s| ?(?:ms|s|m|min|h|d|GPU-hours))\b"), "<some>"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "<url>"),
    (re.compile(r"\bt(?:f_|-)[\w.-]+"), "<token>"),
    (re.compile(r"[\w.-]+@[\w.-]+"), "<user>"),
    (re.compile(r"\s+"), " "),
)


class PageSession:
    """Runs the blocks of one page."""

    def __init__(self, folder: Path, programs: Path = PROGRAMS) -> None:
        self.folder = folder
        self.state_dirs: list[Path] = []
        self._gateway = ""
        self._names: dict[str, Any] = {"__name__": "__main__"}
        # Outside of the folder that commands list.
        state = folder.parent / "page-state"
        self._environment = {
            **environment(programs),
            "HOME": str(folder.parent),
            "PAGE_STATE": str(state),
            STATE_DIR: str(folder.parent / "state"),
        }
        prepare(folder)

    @property
    def is_live(self) -> bool:
        """Tell whether a control plane was started."""
        return bool(self.state_dirs)

    def play(self, block: Block) -> Iterator[tuple[Command, list[str]]]:
        """Run a block; yield the commands of a `console` block with what they printed."""
        if block.verb in ("file", "append"):
            make_file(block, self.folder)
        if block.verb == "not-run":
            return
        if block.kind == "console":
            for command in commands(block):
                yield command, self._console(command.text)
        elif block.kind == "python" or (block.kind, block.name) == ("setup", "python"):
            self._python(block)
        elif block.kind in ("bash", "setup"):
            self._script("\n".join(block.lines))

    def close(self) -> None:
        """Cancel the jobs that still run and stop the control planes."""
        for state_dir in self.state_dirs:
            if not (state_dir / "address.json").exists():
                continue
            with self._surroundings({STATE_DIR: str(state_dir)}), tenfold.Client() as client:
                for job in client.jobs():
                    if job.state in ("pending", "starting", "running"):
                        # It may end by itself meanwhile.
                        with contextlib.suppress(tenfold.Refused):
                            client.cancel(job.id)
                        client.wait(job.id)
            self._run("tenfold down", {STATE_DIR: str(state_dir)})

    def _console(self, text: str) -> list[str]:
        up = _UP.match(text)
        if up:
            return self._start(up["options"])
        return self._presentable(trimmed(self._run(text)[1]))

    def _script(self, text: str) -> None:
        """Run commands, which must succeed; a control plane in the background."""
        rest = text
        while up := _UP.search(rest):
            self._succeed(rest[: up.start()])
            self._start(up["options"])
            rest = rest[up.end() :]
        self._succeed(rest)

    def _succeed(self, text: str) -> None:
        if text.strip():
            status, printed = self._run(f"set -eo pipefail\n{text}")
            assert status == 0, f"exit status {status}:\n{text}\nprinted:\n{printed}"

    def _python(self, block: Block) -> None:
        code = compile("\n" * block.line + "\n".join(block.lines) + "\n", "page", "exec")
        with (
            self._surroundings(self._environment),
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            exec(code, self._names)

    def _run(self, text: str, more: dict[str, str] | None = None) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", _SHELL + self._with_address(text)],
            cwd=self.folder,
            env={**self._environment, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        return done.returncode, done.stdout

    def _with_address(self, text: str) -> str:
        """Return commands with the ports that the control plane has, instead of the usual ones."""
        if self._gateway:
            text = text.replace(SHOWN_GATEWAY, self._gateway)
        if SHOWN_ADDRESS not in text or not self.is_live:
            return text
        address = json.loads((self.state_dirs[-1] / "address.json").read_text())
        return text.replace(SHOWN_ADDRESS, address["url"].removeprefix("http://"))

    def _start(self, options: str) -> list[str]:
        """Start a control plane; return what it says once it answers."""
        options = options.replace(SHOWN_GATEWAY, "127.0.0.1:0")
        _, state_dir = self._run(f'set -- {options}\nprintf %s "${STATE_DIR}"')
        named = re.search(r"--state-dir (\S+)", options)
        self.state_dirs.append(self.folder / named[1] if named else Path(state_dir))
        process = subprocess.Popen(
            ["bash", "-c", f"{_SHELL}exec tenfold up --listen 127.0.0.1:0 {options}"],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None, "a pipe was asked for"
        said: list[str] = []
        for line in process.stdout:
            said.append(line.rstrip())
            if line.startswith(_GATEWAY):
                self._gateway = said[-1].removeprefix(_GATEWAY)
            if line.startswith(_ANSWERS):
                return self._presentable(said)
        raise AssertionError("\n".join(said))

    def _presentable(self, printed: list[str]) -> list[str]:
        """Return output with names that a page may show instead of those of this machine."""
        if not self.is_live:
            return printed
        host = re.escape(socket.gethostname())
        replaced = (
            (re.escape(self._environment[STATE_DIR]), SHOWN_STATE_DIR),
            (re.escape(str(self.folder)), SHOWN_FOLDER),
            (r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:7410"),
            (r"\btf_[\w-]+", "tf_..."),
            (rf"[\w.-]+@{host}\b", f"ann@{SHOWN_HOST}"),
            (rf"(?<![\w-]){host}(?![\w-])", SHOWN_HOST),
        )
        text = "\n".join(printed)
        for pattern, shown in replaced:
            text = re.sub(pattern, shown, text)
        return text.split("\n")

    @contextmanager
    def _surroundings(self, variables: dict[str, str]) -> Generator[None]:
        before = dict(os.environ)
        try:
            os.environ.update(variables)
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextmanager
def page_session(parent: Path, programs: Path = PROGRAMS) -> Generator[PageSession]:
    """Yield a session in a folder of its own."""
    # A fleet that does not say its name is called after its folder.
    folder = parent / "my-fleet"
    folder.mkdir()
    made = PageSession(folder, programs)
    try:
        yield made
    finally:
        made.close()


def without_what_varies(lines: list[str]) -> list[str]:
    """Return lines without times, ports, tokens, users and widths of columns."""
    text = []
    for line in lines:
        plain = line.strip()
        for pattern, instead in _VARIES:
            plain = pattern.sub(instead, plain)
        text.append(plain)
    return text
