"""Every command and option has a line of help, and options state their defaults."""

import re
import subprocess
import sys

import pytest

from docs.generate_reference import commands
from tenfold.cli.main import app

COMMANDS = list(commands())
GROUPS = sorted({words[:-1] for words in COMMANDS if words})


@pytest.mark.parametrize("group", GROUPS, ids=lambda words: " ".join(words) or "tenfold")
def test_a_list_of_commands_has_no_blank(group: tuple[str, ...]):
    # A process of its own: a command that is loaded already shows its docstring.
    done = subprocess.run(
        [sys.executable, "-m", "tenfold", *group, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = re.findall(r"^│ +([a-z-]+) +(.*?)│$", done.stdout, re.MULTILINE)
    listed = {name: text.strip() for name, text in shown}
    names = [words[-1] for words in COMMANDS if words and words[:-1] == group]
    assert {name: listed.get(name, "") for name in names if not listed.get(name)} == {}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "tenfold")
def test_an_option_has_help(words: tuple[str, ...]):
    command = app
    for word in words:
        command = command[word]
    if command.default_command is None:
        return
    arguments = command.assemble_argument_collection()
    assert [one.name for one in arguments if one.show and not one.parameter.help] == []


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "tenfold")
def test_the_help_of_an_option_has_no_full_stop_and_its_true_default(words: tuple[str, ...]):
    command = app
    for word in words:
        command = command[word]
    if command.default_command is None:
        return
    wrong: list[str] = []
    for one in command.assemble_argument_collection():
        text = one.parameter.help or ""
        default = one.field_info.default
        stated = re.search(r"\(default: ([\d.]+)\)", text)
        is_number = isinstance(default, int | float) and not isinstance(default, bool)
        is_true = not is_number or (stated is not None and float(stated[1]) == default)
        if text.endswith(".") or not is_true:
            wrong.append(f"{one.name}: {text} ({default})")
    assert wrong == []
