"""The variables that `--export=ALL` passes on: those of the shell that submits, as in Slurm.

Only on request: the values are stored in the journal with the job. Variables that belong to another
job, to this shell alone, or to Tenfold, such as its token, are not passed.
"""

import re
from collections.abc import Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_VALUE = re.compile(r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*\Z")
"""What a submission may contain; other values are those of terminals."""
_OWN_PREFIXES = ("TENFOLD_", "PET_", "SLURM", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_OWN_NAMES = frozenset(
    {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"}
    | {"_", "PWD", "OLDPWD", "SHLVL"}
)


OF_IMAGE = frozenset({"PATH", "LD_LIBRARY_PATH", "HOME"})
"""Variables that an image has of its own."""
OF_ROOT = frozenset({"HOME"})
"""No other user may enter the home folder of root, and jobs run as other users."""


def passed_on(
    environment: Mapping[str, str], left_out: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return the variables of an environment that a job gets with `--export=ALL`."""
    return {
        name: value
        for name, value in environment.items()
        if _NAME.match(name)
        and not name.startswith(_OWN_PREFIXES)
        and name not in _OWN_NAMES | left_out
        and _VALUE.match(value)
    }
