"""Errors for files that cannot be read."""

import re

from tenfold.model.errors import InputError


def read_error(file: str, error: OSError) -> InputError:
    """Return the error for a file that the operating system could not read."""
    if isinstance(error, FileNotFoundError):
        return InputError("no-such-file", f"no such file: `{file}`", "check the path", file=file)
    if isinstance(error, IsADirectoryError):
        return InputError(
            "is-a-directory", f"`{file}` is a directory", "pass a file in it", file=file
        )
    if isinstance(error, PermissionError):
        return InputError(
            "no-permission",
            f"permission denied: `{file}`",
            f"check its permissions with `ls -l {file}`",
            file=file,
        )
    return InputError(
        "unreadable-file",
        f"cannot read `{file}`: {error.strerror or error}",
        "check the path and the disk",
        file=file,
    )


def lower_first(error: object) -> str:
    """Return the text of an error with its first letter in lower case."""
    text = str(error)
    # An abbreviation such as JSON keeps its letters.
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def json_problem(error: Exception) -> str:
    """Return what is wrong with JSON text, in one plain phrase."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start:,} is not UTF-8"
    text = str(error).split("\n")[0].removeprefix("JSON is malformed: ")
    if text == "Input data was truncated":
        return "it ends early"
    if text.startswith("Expecting value"):
        return "a value is missing"
    text = re.sub(r"^Object missing required field (`[^`]*`)", r"\1 is missing", text)
    text = re.sub(r" - at `\$\.([^`]*)`$", r" (in `\1`)", text)
    text = re.sub(r": line 1 column (\d+) \(char \d+\)$", r" (column \1)", text)
    return lower_first(text)
