"""Why a file cannot be read, in one sentence that says what to do."""

from tenfold.model.errors import InputError


def read_error(file: str, error: OSError) -> InputError:
    """Return what to tell about a file that the system does not give."""
    if isinstance(error, FileNotFoundError):
        return InputError("no-such-file", f"there is no file `{file}`", "check the path", file=file)
    if isinstance(error, IsADirectoryError):
        return InputError(
            "is-a-directory", f"`{file}` is a directory", "name the file inside it", file=file
        )
    if isinstance(error, PermissionError):
        return InputError(
            "no-permission",
            f"`{file}` may not be read by this user",
            f"`ls -l {file}` shows who may",
            file=file,
        )
    return InputError(
        "unreadable-file",
        f"`{file}` cannot be read: {error.strerror or error}",
        "check the path and the disk",
        file=file,
    )


def lower_first(error: object) -> str:
    """Return what an error says, to stand within a sentence."""
    text = str(error)
    return text[:1].lower() + text[1:]
