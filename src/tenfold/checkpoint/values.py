"""Convert nested values to a JSON tree plus byte strings, and back.

The tree contains small values and the positions of the byte strings. Dicts keep their order and key
types, tuples stay tuples, floats are exact. A subclass of dict, list, tuple, int or str is loaded
as the plain type.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, cast

from tenfold.checkpoint.arrays import ValueSpec, allocate, content, finish, spec_of
from tenfold.checkpoint.errors import CheckpointError, Damaged

Tree = None | bool | int | str | list["Tree"] | dict[str, Any]
Fill = Callable[[memoryview], None]
"""Fills memory with the next bytes of the file."""

_DEPTH_MOST = 100
_WIDE = 64


class Leaf(NamedTuple):
    """A value stored as bytes, which are read only when written."""

    value: object
    spec: ValueSpec

    def content(self) -> memoryview:
        """Return the bytes."""
        if self.spec["kind"] == "bytes":
            return memoryview(cast("bytes", self.value))
        return content(self.value, self.spec)


def flatten(value: object, leaves: list[Leaf], where: str = "values", depth: int = 0) -> Tree:
    """Return the tree of a value, and add byte values to `leaves`."""
    if depth > _DEPTH_MOST:
        raise CheckpointError(
            code="checkpoint-too-deep",
            message=f"values are nested more than {_DEPTH_MOST} levels deep",
            hint="flatten them, or look for a value that contains itself",
        )
    spec = spec_of(value, where)
    if spec is None and isinstance(value, bytes | bytearray):
        spec = {"kind": "bytes", "bytes": len(value)}
    if spec is not None:
        leaves.append(Leaf(value, spec))
        return {"leaf": spec}
    if isinstance(value, Mapping):
        return _flatten_dict(cast("Mapping[object, object]", value), leaves, where, depth)
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        rows = [flatten(one, leaves, f"{where}[{at}]", depth + 1) for at, one in enumerate(items)]
        return rows if isinstance(value, list) else {"tuple": rows}
    return _scalar(value, where)


def _flatten_dict(
    value: Mapping[object, object], leaves: list[Leaf], where: str, depth: int
) -> Tree:
    pairs: list[Tree] = []
    for key, one in value.items():
        inner = f"{where}[{key!r}]"
        if isinstance(key, tuple):
            parts = cast("tuple[object, ...]", key)
            encoded_key: Tree = {"tuple": [_scalar(part, f"a key of {where}") for part in parts]}
        else:
            encoded_key = _scalar(key, f"a key of {where}")
        pairs.append([encoded_key, flatten(one, leaves, inner, depth + 1)])
    return {"dict": pairs}


def _scalar(value: object, where: str) -> Tree:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        plain = int(value)
        # JSON readers and Python limit the digits of integers.
        return plain if plain.bit_length() < _WIDE else {"int": hex(plain)}
    if isinstance(value, float):
        return {"float": float(value).hex()}
    raise CheckpointError(
        code="checkpoint-cannot-store",
        message=f"{where} is a `{type(value).__name__}`, which a checkpoint cannot contain",
        hint="store numbers, strings, bytes, arrays, tensors, and dicts, lists and tuples of them",
    )


def rebuild(tree: object, fill: Fill, bytes_left: Callable[[], int]) -> object:
    """Return the value of a tree, with bytes from `fill` in the order of writing.

    `bytes_left` returns how many bytes remain. A tree that `flatten` cannot produce is `Damaged`.
    """
    if tree is None or isinstance(tree, bool | int | str):
        return tree
    if isinstance(tree, list):
        return [rebuild(one, fill, bytes_left) for one in cast("list[object]", tree)]
    if not isinstance(tree, dict) or len(cast("dict[str, object]", tree)) != 1:
        raise Damaged("the value tree is invalid")
    [(kind, inner)] = cast("dict[str, object]", tree).items()
    if kind == "leaf" and isinstance(inner, dict):
        return _read_leaf(cast("ValueSpec", inner), fill, bytes_left())
    if kind == "tuple" and isinstance(inner, list):
        return tuple(rebuild(one, fill, bytes_left) for one in cast("list[object]", inner))
    if kind == "dict" and isinstance(inner, list):
        return _rebuild_dict(cast("list[object]", inner), fill, bytes_left)
    return _rebuild_number(kind, inner)


def _rebuild_dict(pairs: list[object], fill: Fill, bytes_left: Callable[[], int]) -> object:
    made: dict[object, object] = {}
    for pair in pairs:
        both = cast("list[object]", pair) if isinstance(pair, list) else []
        if len(both) != 2:
            raise Damaged("a dict has an invalid entry")
        key = rebuild(both[0], fill, bytes_left)
        if not isinstance(key, Hashable):
            raise Damaged("a dict has an unhashable key")
        made[key] = rebuild(both[1], fill, bytes_left)
    return made


def _rebuild_number(kind: str, inner: object) -> object:
    try:
        if kind == "int":
            return int(str(inner), 16)
        if kind == "float":
            return float.fromhex(str(inner))
    except ValueError:
        raise Damaged("a number is invalid") from None
    raise Damaged(f"the value tree has an unknown kind `{kind}`")


def _read_leaf(spec: ValueSpec, fill: Fill, bytes_left: int) -> object:
    if spec.get("kind") == "bytes":
        size = spec.get("bytes")
        if not isinstance(size, int) or not 0 <= size <= bytes_left:
            raise Damaged("a byte string has an invalid size")
        buffer = bytearray(size)
        fill(memoryview(buffer))
        return bytes(buffer)
    value, memory = allocate(spec, bytes_left)
    fill(memory)
    return finish(value, spec)
