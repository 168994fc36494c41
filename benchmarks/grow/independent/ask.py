"""Ask Tenfold by its command line, in this process, about files written to a folder."""

import io
import json
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from benchmarks.grow.independent.made import Answer, Files, Made
from tenfold.cli.main import main


class Folder:
    """The folder of one made fleet; questions with other files go to numbered folders in it."""

    def __init__(self, path: Path, made: Made) -> None:
        self._path, self._made, self._asked = path, made, 0
        # Answers are kept, because several checks ask for the same grown fleet.
        self._known: dict[tuple[str, ...], Answer] = {}

    def ask(self, files: Files | None = None, words: Sequence[str] | None = None) -> Answer:
        files = self._made.files if files is None else files
        words = tuple(self._made.words if words is None else words)
        key = (*words, *(part for pair in sorted(files.items()) for part in pair))
        if key not in self._known:
            place = self._path if not self._asked else self._path / f"again-{self._asked}"
            self._asked += 1
            place.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (place / name).write_text(text)
            self._known[key] = self._run(place, words)
        return self._known[key]

    def _run(self, place: Path, words: Sequence[str]) -> Answer:
        own = [word.replace("@", f"{place}/") if word.startswith("@") else word for word in words]
        (place / "command").write_text(
            f"tenfold grow {shlex.join([f'{place}/fleet.toml', *own])}\n"
        )
        status, out, errors = run(["grow", f"{place}/fleet.toml", *own, "--json"])
        try:
            answer = json.loads(out) if out.strip() else {}
        except ValueError:
            answer = {}
        return Answer(
            status=status,
            json=answer,
            errors=errors or json.dumps(answer)[:200],
            asked=tuple(words),
            again=self.ask,
            text=lambda: run(["grow", f"{place}/fleet.toml", *own])[1],
            run=lambda *more: run(
                [word.replace("@", f"{place}/") if word.startswith("@") else word for word in more]
            ),
        )


def run(words: Sequence[str]) -> tuple[int, str, str]:
    """Return status, standard output and standard error of one command."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        status = main(list(words))
    return status, out.getvalue(), errors.getvalue()
