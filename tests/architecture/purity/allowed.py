"""What each room may import, and which rooms and files may read which clock."""

ROOMS = ("model", "physics", "fleet", "decide", "engine", "sim")
"""Rooms that are pure: the same arguments give the same bytes, on any machine, at any time."""

_DATA = {"collections", "collections.abc", "itertools", "typing", "msgspec", "msgspec.structs"}
_ARRAYS = {"numpy", "numpy.typing"}

IMPORTS: dict[str, set[str]] = {
    "model": {*_DATA, "difflib", "functools", "math", "re"},
    "physics": {*_DATA, *_ARRAYS, "bisect", "dataclasses", "heapq", "math", "re", "statistics"},
    "fleet": {*_DATA, "contextlib", "functools"},
    "decide": {
        *(_DATA | _ARRAYS),
        *("abc", "bisect", "contextlib", "functools", "hashlib", "heapq", "math", "operator"),
    },
    "engine": {*_DATA, "bisect", "hashlib"},
    "sim": {*_DATA, *_ARRAYS, "bisect", "dataclasses", "hashlib", "heapq", "math"},
}
"""Modules of others that a pure room may import, by full name; anything else is refused."""

BELOW: dict[str, set[str]] = {
    "model": {"model"},
    "physics": {"model", "physics"},
    "fleet": {"model", "physics", "fleet"},
    "decide": {"model", "physics", "fleet", "decide"},
    "engine": {"model", "physics", "fleet", "engine"},
    # Not `clock`, `files` or `facts`, which its layer could import: a world of virtual time
    # is handed all it uses.
    "sim": {"model", "physics", "engine", "fleet", "sim"},
}
"""Rooms of ours that a pure room may import."""

SUPPRESSED = {"reportPrivateUsage", "reportArgumentType", "reportAssignmentType"}
"""Complaints of the type checker that a pure room may silence: none hides a change of a view."""

WALL_TIME: dict[str, str] = {
    "checkpoint/heartbeat.py": "runs inside training jobs and imports nothing of ours",
    "checkpoint/saving.py": "runs inside training jobs and imports nothing of ours",
}
"""Files outside `clock` that may ask what time it is, and why."""

ELAPSED: dict[str, str] = {
    "checkpoint": "paces saves and the fence inside training jobs, with nothing of ours at hand",
    "cli": "waits for a server or a node test that runs outside this process",
    "client": "retries with a time limit, in processes of users",
    "journal": "paces compaction by what it costs the writer",
    "live": "the real world: grace times of processes, containers and supervisors",
    "objects": "paces background moves, and looks for changed files now and then",
    "server": "measures requests and cycles for metrics, and paces background work",
}
"""Rooms that may import `time` to measure how long something takes, or to sleep, and why."""
