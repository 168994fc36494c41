"""Read a file of timings from any supported tool."""

import zlib
from pathlib import Path

from tenfold.files.core.document import decode, read_bytes
from tenfold.files.measured import nccl_tests, nsys_stats
from tenfold.files.measured.nccl_tests import read_nccl_tests
from tenfold.files.measured.nsys_stats import read_nsys_stats
from tenfold.files.measured.reading import Reading
from tenfold.files.measured.steps import read_step_csv, read_step_lines
from tenfold.files.measured.torch_trace import read_torch_trace
from tenfold.model.errors import InputError

SIZE_MAX_BYTES = 1024 * 1024 * 1024
LINES_SUFFIXES = (".jsonl", ".ndjson")
GZIP_MARK = b"\x1f\x8b"


def read_measured(path: Path, skip: int = 0) -> Reading:
    """Return what a file measured; `skip` leaves out the first steps of a job."""
    content = _unpacked(read_bytes(path, SIZE_MAX_BYTES), path)
    file = str(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix == ".json":
        return read_torch_trace(content, file, skip)
    text = decode(content, path)
    if suffix in LINES_SUFFIXES:
        return read_step_lines(text, file, skip)
    # The other formats are recognised by their content.
    if nsys_stats.MARK in text:
        return read_nsys_stats(text, file)
    if suffix == ".csv":
        return read_step_csv(text, file, skip)
    if nccl_tests.MARK in text:
        return read_nccl_tests(text, file)
    raise InputError(
        "unknown-measurement",
        f"`{file}` has no timings in a known format",
        "use steps (.jsonl or .csv), a PyTorch trace (.json or .json.gz), the output of "
        "NCCL-tests, or the CSV of `nsys stats -r cuda_gpu_kern_sum`",
        file=file,
    )


def _unpacked(content: bytes, path: Path) -> bytes:
    if not content.startswith(GZIP_MARK):
        return content
    try:
        # Bounded: a small file may unpack to more than memory holds.
        unpacked = zlib.decompressobj(wbits=31).decompress(content, SIZE_MAX_BYTES + 1)
    except zlib.error:
        raise InputError(
            "unreadable-file", f"`{path}` is damaged", "copy or compress it again", file=str(path)
        ) from None
    if len(unpacked) > SIZE_MAX_BYTES:
        raise InputError(
            "file-too-large",
            f"`{path}` unpacks to more than {SIZE_MAX_BYTES / 1e6:,.0f} MB",
            "profile fewer steps",
            file=str(path),
        )
    return unpacked
