"""Where a job was submitted from: the folder, and the state of the code in it.

The command line fills it in. The folder is the working directory of the job if the control plane
runs on the same machine; the rest is only recorded, so that a run can be repeated later.
"""

from typing import Annotated

from msgspec import Meta, Struct

from tenfold.model.strings import ARGUMENT, END, FolderPath, Line

DIFF_CHARACTERS_MAX = 16_384
"""Characters of a diff that are recorded. Every event of the job has them."""
Diff = Annotated[str, Meta(max_length=DIFF_CHARACTERS_MAX, pattern=ARGUMENT)]
Revision = Annotated[str, Meta(min_length=4, max_length=64, pattern=rf"^[0-9a-f]+{END}")]


class CodeState(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The state of a git repository."""

    revision: Revision
    branch: Line = ""
    """Empty if no branch is checked out."""
    dirty: bool = False
    """Whether tracked files have changes that are not committed."""
    diff: Diff = ""
    """These changes, or the beginning of them, without what looks like a secret."""
    diff_bytes: Annotated[int, Meta(ge=0, le=1 << 53)] = 0
    """Size of the whole diff; more than `diff` has if that was cut."""
    untracked: Annotated[int, Meta(ge=0, le=1 << 53)] = 0
    """Files that git neither tracks nor ignores."""


class Origin(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Where a submission came from."""

    folder: FolderPath = ""
    """The submitter's working directory, an absolute path."""
    host: Line = ""
    machine: Line = ""
    """Identifies the machine or container: its boot. The folder is used only if it is the same."""
    virtual_env: FolderPath = ""
    """The active Python environment."""
    code: CodeState | None = None
