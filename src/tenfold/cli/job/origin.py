"""Record where a job is submitted from: the folder, and the state of the code in it.

Nothing here may stop a submission: without git, or where git takes too long, less is recorded.
Values of environment variables are never recorded. What looks like a secret is cut from the diff.
"""

import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from socket import gethostname

from msgspec import to_builtins

from tenfold.live.local.processes import boot
from tenfold.model.job.origin import DIFF_CHARACTERS_MAX, CodeState, Origin
from tenfold.model.strings import FOLDER_DEPTH_MAX

GIT_S = 5.0
"""How long git may take; a repository on a slow file system is then not recorded."""
GIT_BYTES_MAX = 64 << 20
ARRAY_CHARACTERS_MAX = 32 << 20
"""Characters of the diff in all events of an array: each member has its own event."""
REMOVED = "***"
SECRET_FILES = re.compile(
    r"(?:^|/)(?:\.env[^/]*|\.netrc|\.pgpass|\.npmrc|\.pypirc|id_[a-z0-9]+|credentials[^/]*"
    r"|[^/]*\.(?:pem|key|p12|pfx|kdbx|keystore))$"
)
"""Files whose changes are left out."""
_ASSIGNED = re.compile(
    r"((?:secret|token|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credential|auth)[\w.-]*[\"']?\s*(?:=|:)\s*)(?!\s)[^\s,;#]+",
    re.IGNORECASE,
)
_KNOWN = re.compile(
    r"(?:tf_|hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abpr]-|AKIA|ASIA|AIza|eyJ)[A-Za-z0-9_.-]{12,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
"""Tokens of known services, and passwords in addresses."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def origin_here(members: int = 1, *, snapshot: bool = True) -> dict[str, object]:
    """Return where a job is submitted from, as a key of a submission.

    `members` is the size of an array: the larger it is, the less of the diff is recorded.
    """
    folder = _folder()
    characters = min(DIFF_CHARACTERS_MAX, ARRAY_CHARACTERS_MAX // max(1, members))
    origin = Origin(
        folder=folder,
        host=gethostname()[:200],
        machine=boot(),
        virtual_env=_usable(os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX") or ""),
        code=_code(folder, characters) if snapshot and folder else None,
    )
    found: dict[str, object] = to_builtins(origin)
    return found


def code_in(folder: str) -> CodeState | None:
    """Return the state of the code in a folder, without its diff; None if git knows none."""
    return _code(folder, 0)


def _folder() -> str:
    try:
        return _usable(str(Path.cwd()))
    except OSError:
        # It was removed.
        return ""


def _usable(path: str) -> str:
    """Return a path that a submission may contain; otherwise nothing."""
    is_long = len(path) > 4_096 or path.count("/") > FOLDER_DEPTH_MAX
    return "" if is_long or _CONTROL.search(path) or not path.isprintable() else path


def _code(folder: str, characters: int) -> CodeState | None:
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    branch = _git(folder, "symbolic-ref", "--quiet", "--short", "HEAD") or b""
    # Only what is in the repository: other settings could run programs.
    changed = _git(folder, "diff", "HEAD", "--name-only", "-z", "--no-ext-diff") or b""
    others = _git(folder, "ls-files", "--others", "--exclude-standard", "-z") or b""
    diff, size = _diff(folder, changed, characters)
    return CodeState(
        revision=head.decode().strip(),
        branch=_CONTROL.sub("", branch.decode(errors="replace").strip())[:200],
        dirty=bool(changed),
        diff=diff,
        diff_bytes=size,
        untracked=others.count(b"\0"),
    )


def _diff(folder: str, changed: bytes, characters: int) -> tuple[str, int]:
    """Return the beginning of the diff without secrets, and the size of all of it."""
    names = [os.fsdecode(name) for name in changed.split(b"\0") if name]
    hidden = [f":(top,exclude,literal){name}" for name in names if SECRET_FILES.search(name)]
    if len(hidden) == len(names):
        return "", 0
    options = ("--no-ext-diff", "--no-textconv", "--no-color")
    found = _git(folder, "diff", "HEAD", *options, "--", ":(top)", *hidden)
    if not found:
        return "", 0
    text = found.decode(errors="replace")
    # Twice what is kept: what is cut out makes it shorter, and a large diff takes long.
    return without_secrets(text[: 2 * characters])[:characters], len(found)


def without_secrets(text: str) -> str:
    """Return a text without control characters and without what looks like a secret."""
    text = _KNOWN.sub(REMOVED, _ASSIGNED.sub(rf"\1{REMOVED}", text))
    return _CONTROL.sub("\ufffd", text)


def _git(folder: str, *words: str) -> bytes | None:
    """Return what git prints; None if it is missing, fails or takes too long."""
    command = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", "-C", folder, *words]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command, capture_output=True, timeout=GIT_S, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode == 0 and len(done.stdout) <= GIT_BYTES_MAX:
            return done.stdout
    return None
