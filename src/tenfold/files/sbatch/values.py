"""The values of options of sbatch: dependencies, numbers of GPUs and names."""

import re

_DEPENDENCY = re.compile(r"(\w+)((?::[^:,?]+)*)\Z")


def read_dependency(text: str) -> dict[str, object] | str:
    """Return the keys of a Slurm dependency, or why it cannot be one."""
    if "?" in text:
        return "any one of several dependencies (`?`) is not supported"
    after, after_any, singleton = list[str](), list[str](), False
    kind = ""
    for part in text.split(","):
        match = _DEPENDENCY.match(part.strip())
        if match is None:
            return f"`{part}` is not a dependency"
        names = [name for name in match[2].split(":") if name]
        if not names and kind and match[1] != "singleton":
            # `afterok:1,2` is what some write for `afterok:1:2`.
            names = [match[1]]
        else:
            kind = match[1]
        if kind == "singleton":
            singleton = True
        elif kind == "afterok" and names:
            after += names
        elif kind == "afterany" and names:
            after_any += names
        else:
            return f"`{kind}` is not supported"
    return {"after": after, "after_any": after_any, "singleton": singleton}


def gpu_count(text: str, *, is_gres: bool) -> tuple[str, int] | None:
    """Return (type, number) of `gpu:h100:4`, `h100:4`, `gpu:4`, `4` or `gpu`."""
    words = text.strip().split(":")
    if "," in text:
        return None
    if is_gres:
        if words.pop(0) != "gpu":
            return None
        if not words:
            return "", 1
    elif words[0] == "gpu" and len(words) > 1:
        words.pop(0)
    number = words.pop() if words[-1].isdecimal() else "1"
    if len(words) > 1 or (not words and not number):
        return None
    return (words[0] if words else ""), int(number)


def folder_name(text: str) -> str:
    """Return a name that a job may have: other characters become a dash."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")
    return name[:80] or "job"
