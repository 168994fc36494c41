"""Arrays and tensors as a short description plus their raw bytes.

Nothing is pickled. numpy and torch are imported only if a value or checkpoint needs them. A tensor
on an accelerator is copied to the CPU when its bytes are read, one at a time. Types added by other
libraries (bfloat16, float8) are stored as bytes under their torch name.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import Any, cast

from tenfold.checkpoint.errors import CheckpointError, Damaged

ValueSpec = dict[str, Any]
"""`kind`, `dtype`, `shape` and `bytes` of a value."""

_LIBRARIES = {"array": "numpy", "scalar": "numpy", "tensor": "torch"}
_PLAIN = "biufcSUMmV"
"""Kinds of numpy types that are plain bytes."""


def spec_of(value: object, where: str) -> ValueSpec | None:
    """Return the spec of an array, scalar or tensor; None if it is none of them."""
    numpy = cast("Any", sys.modules.get("numpy"))
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        return _numpy_spec(numpy, cast("Any", value), where)
    torch = cast("Any", sys.modules.get("torch"))
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_spec(torch, cast("Any", value), where)
    return None


def content(value: object, spec: ValueSpec) -> memoryview:
    """Return the bytes of a value in row-major order."""
    if not spec["bytes"]:
        return memoryview(b"")
    if spec["kind"] == "tensor":
        tensor = cast("Any", value).detach().cpu().resolve_conj().resolve_neg().contiguous()
        torch = cast("Any", sys.modules["torch"])
        return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())
    numpy = cast("Any", sys.modules["numpy"])
    return memoryview(numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8))


def allocate(spec: ValueSpec, bytes_left: int) -> tuple[Any, memoryview]:
    """Return an empty value of this spec, and its memory to fill.

    The spec is untrusted: it must be one that `spec_of` could have returned, and `bytes_left` is
    the most bytes there can be.
    """
    kind, shape, size = spec.get("kind"), _shape(spec), spec.get("bytes")
    if kind not in _LIBRARIES or not isinstance(size, int) or not 0 <= size <= bytes_left:
        raise Damaged("a value has an invalid spec")
    try:
        module = import_module(_LIBRARIES[kind])
    except ImportError:
        raise CheckpointError(
            code="checkpoint-needs-library",
            message=f"the checkpoint needs {_LIBRARIES[kind]}, which is not installed",
            hint=f"run `pip install {_LIBRARIES[kind]}`",
        ) from None
    make = _torch_empty if kind == "tensor" else _numpy_empty
    try:
        return make(module, spec, shape)
    except (TypeError, ValueError, RuntimeError, SyntaxError, OverflowError) as error:
        raise Damaged(f"a value has an invalid spec: {error}") from None


def finish(value: Any, spec: ValueSpec) -> Any:
    """Return a filled value in its original form: numpy scalars are taken out of their array."""
    return value[()] if spec["kind"] == "scalar" else value


def _numpy_spec(numpy: Any, value: Any, where: str) -> ValueSpec:
    kind = "scalar" if isinstance(value, numpy.generic) else "array"
    dtype = value.dtype
    if dtype.kind not in _PLAIN or dtype.names or numpy.dtype(dtype.str) != dtype:
        raise _unsupported(where, f"a numpy value of type `{dtype}`", "convert it to plain numbers")
    if kind == "array" and type(value) not in (numpy.ndarray, numpy.memmap):
        raise _unsupported(where, f"a `{type(value).__name__}`", "store its arrays separately")
    return {
        "kind": kind,
        "dtype": str(dtype.str),
        "shape": [int(size) for size in value.shape],
        "bytes": int(value.nbytes),
    }


def _torch_spec(torch: Any, value: Any, where: str) -> ValueSpec:
    if hasattr(value, "to_local"):
        raise _unsupported(where, "a distributed tensor", "store `.to_local()` on each rank")
    strided = value.layout == torch.strided
    if not strided or value.is_quantized or value.device.type == "meta":
        raise _unsupported(where, "a sparse, quantised or meta tensor", "store its dense parts")
    return {
        "kind": "tensor",
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": [int(size) for size in value.shape],
        "bytes": int(value.numel()) * int(value.element_size()),
    }


def _numpy_empty(numpy: Any, spec: ValueSpec, shape: Sequence[int]) -> tuple[Any, memoryview]:
    dtype = numpy.dtype(str(spec.get("dtype")))
    if dtype.kind not in _PLAIN or dtype.str != spec.get("dtype"):
        raise Damaged(f"`{spec.get('dtype')}` is not a plain numpy type")
    if prod(shape) * dtype.itemsize != spec["bytes"]:
        raise Damaged("the size of a numpy value does not match its shape")
    value = numpy.empty(shape, dtype)
    if not spec["bytes"]:
        return value, memoryview(b"")
    return value, memoryview(value.reshape(-1).view(numpy.uint8))


def _torch_empty(torch: Any, spec: ValueSpec, shape: Sequence[int]) -> tuple[Any, memoryview]:
    dtype = cast("Any", getattr(torch, str(spec.get("dtype")), None))
    if not isinstance(dtype, torch.dtype):
        raise Damaged(f"`{spec.get('dtype')}` is not a torch type")
    if prod(shape) * dtype.itemsize != spec["bytes"]:
        raise Damaged("the size of a tensor does not match its shape")
    if not spec["bytes"]:
        return torch.empty(shape, dtype=dtype), memoryview(b"")
    flat = torch.empty(spec["bytes"], dtype=torch.uint8)
    return flat.view(dtype).reshape(shape), memoryview(flat.numpy())


def _shape(spec: ValueSpec) -> list[int]:
    shape = spec.get("shape")
    if not isinstance(shape, list):
        raise Damaged("a value has no shape")
    sizes = cast("list[object]", shape)
    if not all(isinstance(size, int) and 0 <= size < 1 << 62 for size in sizes):
        raise Damaged("a value has an invalid shape")
    return cast("list[int]", sizes)


def _unsupported(where: str, what: str, hint: str) -> CheckpointError:
    return CheckpointError(
        code="checkpoint-cannot-store",
        message=f"{where} is {what}, which a checkpoint cannot contain",
        hint=hint,
    )
