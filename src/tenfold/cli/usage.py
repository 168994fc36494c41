"""Say what is wrong with a command line: the option, what it expects, and what was typed."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from enum import Enum
from typing import Literal, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)
from cyclopts.argument import Argument

ALIKE = 0.7
CONTAINED_LENGTH_MIN = 3
KINDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}
BOUNDS = {">=": "at least", ">": "greater than", "<=": "at most", "<": "less than"}
COMMAND = re.compile(r"[a-z][a-z-]*")


def usage_text(error: CycloptsError) -> tuple[str, str]:
    """Return the message and the hint for a command line that cannot be parsed."""
    command = _command(error)
    see = f"see `{command} --help`"
    if isinstance(error, UnknownCommandError):
        word = (error.unused_tokens or [""])[0]
        if word.startswith("-"):
            return f"unknown option `{word}`", see
        return f"unknown command `{command} {word}`", _did_you_mean(word, _commands(error), see)
    if isinstance(error, UnknownOptionError):
        word = (error.token.keyword or error.token.value).split("=", 1)[0]
        known = [name for one in error.argument_collection if one.parse for name in one.names]
        return f"unknown option `{word}`", _did_you_mean(word, known, see)
    if isinstance(error, UnusedCliTokensError):
        return f"unexpected argument `{(error.unused_tokens or [''])[0]}`", see
    if isinstance(error, RepeatArgumentError):
        return f"`{error.token.keyword}` is given more than once", "give it once"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error, error.argument), see
    if isinstance(error, CoercionError) and error.token is not None and error.msg is None:
        return _wrong_type(error, see)
    if isinstance(error, ValidationError) and error.argument is not None:
        return _out_of_range(error, error.argument), see
    text = " ".join(str(error).split()).rstrip(".").replace('"', "`")
    return text[:1].lower() + text[1:], see


def _command(error: CycloptsError) -> str:
    """Return the command as typed, such as `tenfold fleet check`."""
    words = list(error.command_chain or ())
    if not words and isinstance(error, UnknownCommandError):
        typed = error.root_input_tokens or []
        words = typed[: len(typed) - len(error.unused_tokens or [])]
    return " ".join(["tenfold", *words])


def _commands(error: UnknownCommandError) -> list[str]:
    return [] if error.app is None else [name for name in error.app if COMMAND.fullmatch(name)]


def _did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    near = closest(word, known)
    return otherwise if near is None else f"did you mean `{near}`?"


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a word, or None if none is."""
    plain = word.strip("-").lower()

    def likeness(name: str) -> float:
        other = name.strip("-").lower()
        if len(plain) >= CONTAINED_LENGTH_MIN and plain in other:
            return 1.0
        return SequenceMatcher(None, plain, other).ratio()

    best = max(known, key=likeness, default=None)
    return best if best is not None and likeness(best) >= ALIKE else None


def _missing(error: MissingArgumentError, argument: Argument) -> str:
    name = error.keyword or next((one.keyword for one in argument.tokens if one.keyword), None)
    if name is not None:
        return f"`{name}` needs a value"
    if argument.field_info.is_positional:
        return f"missing argument `{_upper(argument)}`"
    return f"missing option `{argument.name}`"


def _upper(argument: Argument) -> str:
    return argument.name.lstrip("-").upper()


def _wrong_type(error: CoercionError, see: str) -> tuple[str, str]:
    token = error.token
    assert token is not None, "the caller checks that there is a token"
    name = token.keyword or ("" if error.argument is None else _upper(error.argument))
    choices = _choices(error.target_type)
    if choices:
        message = f"`{name}` must be one of {', '.join(choices)}, got `{token.value}`"
        return message, _did_you_mean(token.value, choices, see)
    kind = KINDS.get(error.target_type or str, "a valid value")
    return f"`{name}` must be {kind}, got `{token.value}`", see


def _choices(kind: type | None) -> list[str]:
    if get_origin(kind) is Literal:
        return [str(one) for one in get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [name.replace("_", "-") for name in kind.__members__]
    return []


def _out_of_range(error: ValidationError, argument: Argument) -> str:
    typed = " ".join(one.value for one in argument.tokens)
    named = next((one.keyword for one in argument.tokens if one.keyword), None)
    name = named or _upper(argument)
    text = error.exception_message.rstrip(".")
    found = re.fullmatch(r"Must be (>=|>|<=|<) (\S+)", text)
    if found is None:
        return f"`{name}` cannot be `{typed}`: {text[:1].lower()}{text[1:]}"
    return f"`{name}` must be {BOUNDS[found[1]]} {float(found[2]):,.12g}, got `{typed}`"
