"""Read the steps of a PyTorch profiler trace: `ProfilerStep#` spans and the kernels in them.

The parts are what is left exposed, so that they add up to no more than the step: kernels
that are not NCCL's count as compute, NCCL's as communication where no other kernel runs,
and waiting for the data loader as data where no kernel runs at all. Kernels run behind
the processor that launched them, so one at an edge may count to the next step.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.files.measured.reading import Reading
from tenfold.model.baseline import Part, Steps, downsample_values, is_communication
from tenfold.model.errors import InputError

STEP = "ProfilerStep#"
LOADER = "enumerate(DataLoader)"
GPU_SPAN = "gpu_user_annotation"
MICRO = 1e-6
Spans = NDArray[np.float64]
"""Rows of start and end in microseconds, apart from each other and in order."""


class _Event(Struct):
    name: str = ""
    ph: str = ""
    cat: str = ""
    ts: float | str | None = None
    dur: float | str | None = None


class _Trace(Struct):
    traceEvents: list[_Event]


def read_torch_trace(content: bytes, file: str, skip: int) -> Reading:
    """Return the steps of a trace, the first `skip` of them skipped."""
    events = _events(content, file)
    spans, notes = _steps(events, file)
    kernels = [one for one in events if one.cat == "kernel"]
    computing = _union([one for one in kernels if not is_communication(one.name)])
    talking = _union([one for one in kernels if is_communication(one.name)])
    loading = _union([one for one in events if one.name.startswith(LOADER)])
    busy = _merge(computing, talking)
    windows = spans[skip:]
    parts_us: dict[Part, list[float]] = {}
    if kernels:
        parts_us["compute"] = [_covered(computing, *window) for window in windows]
        parts_us["communication"] = [
            _covered(busy, *window) - _covered(computing, *window) for window in windows
        ]
    if len(loading):
        both = _merge(busy, loading)
        parts_us["data"] = [_covered(both, *window) - _covered(busy, *window) for window in windows]
    parts_s: dict[Part, tuple[float, ...]] = {
        part: downsample_values(tuple(max(0.0, value) * MICRO for value in values))
        for part, values in parts_us.items()
    }
    step_s = tuple((end - start) * MICRO for start, end in windows)
    steps = Steps(count=len(step_s), step_s=downsample_values(step_s), parts_s=parts_s)
    return Reading(measured=steps, notes=tuple(notes))


def _events(content: bytes, file: str) -> list[_Event]:
    """Return the complete events that have a time."""
    try:
        # Some versions write a bare list of events.
        if content.lstrip()[:1] == b"[":
            events = msgspec.json.decode(content, type=list[_Event])
        else:
            events = msgspec.json.decode(content, type=_Trace).traceEvents
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            "not-a-trace",
            f"`{file}` is not a profiler trace: {error}",
            "export it with `torch.profiler.profile(...).export_chrome_trace(...)`",
            file=file,
        ) from None
    return [
        one
        for one in events
        if one.ph == "X" and isinstance(one.ts, float | int) and isinstance(one.dur, float | int)
    ]


def _steps(events: Sequence[_Event], file: str) -> tuple[list[tuple[float, float]], list[str]]:
    """Return the windows of the steps in order; the processor's view of them, not the GPU's."""
    named = [one for one in events if one.name.startswith(STEP)]
    spans = [one for one in named if one.cat != GPU_SPAN] or named
    if not spans:
        raise InputError(
            "no-steps",
            f"`{file}` has no `{STEP}` span",
            "call `profiler.step()` after each step and give the profiler a schedule",
            file=file,
        )
    first: dict[str, _Event] = {}
    for one in sorted(spans, key=lambda span: span.ts if isinstance(span.ts, float) else 0.0):
        first.setdefault(one.name, one)
    notes: list[str] = []
    if len(first) < len(spans):
        notes.append(
            "the same step occurs more than once, as in a trace of several ranks: only one is used"
        )
    return [_window(one) for one in first.values()], notes


def _window(one: _Event) -> tuple[float, float]:
    start, length = float(one.ts or 0.0), float(one.dur or 0.0)
    return start, start + length


def _union(events: Sequence[_Event]) -> Spans:
    spans = np.array([_window(one) for one in events], dtype=np.float64).reshape(-1, 2)
    return _apart(spans)


def _merge(one: Spans, other: Spans) -> Spans:
    return _apart(np.concatenate([one, other]))


def _apart(spans: Spans) -> Spans:
    """Return spans joined where they overlap, so that no moment counts twice."""
    if not len(spans):
        return spans
    ordered = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ordered[:, 1])
    fresh = np.concatenate([[True], ordered[1:, 0] > reach[:-1]])
    starts = np.flatnonzero(fresh)
    ends = np.concatenate([starts[1:] - 1, [len(ordered) - 1]])
    return np.stack([ordered[starts, 0], reach[ends]], axis=1)


def _covered(spans: Spans, start: float, end: float) -> float:
    """Return how much of a window spans that are apart cover."""
    if not len(spans):
        return 0.0
    low = np.searchsorted(spans[:, 1], start, side="right")
    high = np.searchsorted(spans[:, 0], end, side="left")
    part = spans[low:high]
    return float((np.minimum(part[:, 1], end) - np.maximum(part[:, 0], start)).sum())
