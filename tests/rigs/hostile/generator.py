"""Hostile requests for every field that the API describes.

Fields come from the description that the server gives of itself, so a field that is added to a
body, an address or a header is attacked without a change here.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes

from tests.rigs.hostile.values import Value

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]
MARK = "@@hostile@@"
"""Stands in a body where the hostile value goes."""
MARK_KEY = "@@hostile-key@@"
METHODS = ("get", "post", "put", "patch", "delete")
EXAMPLES: Mapping[str, Any] = {"command": ["true", "{port}"], "verb": "cordon", "role": "viewer"}
"""Good values that do no harm, where the description alone would draw another."""
EXAMPLE_TEXTS = (
    *("a", "a-1", "1s", "2026-01-01T00:00:00Z"),
    *("/nowhere", "http://127.0.0.1:9/v1", "0" * 64, "a@1"),
)
ENDLESS = ("/events", "/logs")
"""Asked with `follow=false`: their answers would have no end."""
HEADER_BYTES_MAX = 4_000
"""Longer header values are another class: the limits of the HTTP server."""


class Case(NamedTuple):
    """One request."""

    operation: str
    field: str
    kind: str
    method: str
    target: bytes
    body: bytes = b""
    headers: tuple[tuple[str, bytes], ...] = ()

    def line(self) -> str:
        """Return what is told of it."""
        return (
            f"{self.operation}, {self.field}, {self.kind}:"
            f" {self.target[:120]!r} {self.body[:160]!r} {[v[:80] for _, v in self.headers]}"
        )


class Field(NamedTuple):
    """A place where a value goes: in the address, a header or the body."""

    operation: str
    where: str
    """`path`, `query`, `header`, `body` or `key`."""
    path: Path
    base: Any = None
    """A good body, for fields in one."""

    @property
    def name(self) -> str:
        return ".".join(str(part) for part in self.path)


class Description:
    """The API as it describes itself."""

    def __init__(self, schema: Schema, known: Mapping[str, str]) -> None:
        """`known` has good values of parameters in addresses, so that a request gets further."""
        self._schema, self._known = schema, known
        self.operations: dict[str, Schema] = {
            f"{method} {path}": item[method]
            for path, item in schema["paths"].items()
            for method in METHODS
            if method in item
        }

    def fields(self) -> list[Field]:
        """Return every field of every operation."""
        found: list[Field] = []
        for name, operation in self.operations.items():
            for one in operation.get("parameters", ()):
                found.append(Field(name, one["in"], (one["name"],)))
            for schema in self._bodies(operation):
                base = self.example(schema)
                found.append(Field(name, "body", (), base))
                for path, where in self._places(schema, ()):
                    found.append(Field(name, where, path, base))
        return found

    def cases(self, field: Field, values: Sequence[Value]) -> Iterator[Case]:
        """Yield a request for each of these values in one field."""
        for value in values:
            if field.where in ("path", "query"):
                yield from self._in_address(field, value)
            elif field.where == "header":
                yield from self._in_header(field, value)
            else:
                yield from self._in_body(field, value)
        if field.where == "body" and field.path and isinstance(field.path[-1], str):
            yield self._twice(field)

    def example(self, schema: Schema, name: str = "") -> Any:
        """Return a good value of a schema, as small as it may be."""
        schema = self._resolved(schema)
        if name in EXAMPLES:
            return EXAMPLES[name]
        for union in ("oneOf", "anyOf"):
            if union in schema:
                return self.example(_alternatives(schema, union, self._resolved)[0], name)
        kind = schema.get("type")
        if kind == "object":
            properties = schema.get("properties", {})
            return {
                key: self.example(properties[key], key)
                for key in properties
                if key in schema.get("required", ())
            }
        if kind == "array":
            return [self.example(schema["items"], name)] * max(1, schema.get("minItems", 0))
        return _plain_example(schema)

    def _bodies(self, operation: Schema) -> list[Schema]:
        if "requestBody" not in operation:
            return []
        schema = self._resolved(operation["requestBody"]["content"]["application/json"]["schema"])
        return [self._resolved(one) for one in schema.get("oneOf", [schema])]

    def _places(self, schema: Schema, path: Path) -> Iterator[tuple[Path, str]]:
        """Yield the paths of all values within a schema, and of the keys of maps."""
        schema = self._resolved(schema)
        for union in ("oneOf", "anyOf"):
            if union in schema:
                for one in _alternatives(schema, union, self._resolved):
                    yield from self._places(one, path)
                return
        for key, part in schema.get("properties", {}).items():
            yield (*path, key), "body"
            yield from self._places(part, (*path, key))
        if isinstance(schema.get("additionalProperties"), dict):
            yield (*path, "A"), "body"
            yield path, "key"
        if schema.get("type") == "object":
            yield (*path, "a_key_that_is_not_there"), "body"
        if schema.get("type") == "array" and "items" in schema:
            yield (*path, 0), "body"
            yield from self._places(schema["items"], (*path, 0))

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self._schema["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema

    def _put(self, field: Field, value: Any, *, key: bool = False) -> Any:
        """Return the good body of a field with this value in its place."""
        if not field.path and not key:
            return value
        body = json.loads(json.dumps(field.base))
        at = body
        for here, after in zip(field.path, field.path[1:], strict=False):
            at = _entered(at, here, after)
        if key:
            at = _entered(at, field.path[-1], "") if field.path else at
            at[MARK_KEY] = "a"
        elif isinstance(at, list):
            at[:1] = [value]
        else:
            at[field.path[-1]] = value
        return body

    def _in_body(self, field: Field, value: Value) -> Iterator[Case]:
        if field.where == "key":
            if value.text is None:
                return
            written = json.dumps(self._put(field, "", key=True)).encode()
            body = written.replace(f'"{MARK_KEY}"'.encode(), value.json)
        else:
            written = json.dumps(self._put(field, MARK)).encode()
            body = written.replace(f'"{MARK}"'.encode(), value.json)
        yield self._case(field, value.kind, body=body)

    def _twice(self, field: Field) -> Case:
        """Return a body in which one key comes twice, once with a good value."""
        written = json.dumps(self._put(field, MARK)).encode()
        key = json.dumps(field.path[-1]).encode()
        body = written.replace(f'"{MARK}"'.encode(), b'"a",' + key + b':"b\\u0000"')
        return self._case(field, "duplicate", body=body)

    def _in_address(self, field: Field, value: Value) -> Iterator[Case]:
        text = value.json if value.text is None else value.text.encode("utf-8", "surrogatepass")
        if len(text) > 60_000:
            return
        yield self._case(field, value.kind, value=quote_from_bytes(text, safe=b"").encode())
        if field.where == "path" and value.kind in ("traversal", "unicode"):
            yield self._case(field, f"raw {value.kind}", value=_raw(text))

    def _in_header(self, field: Field, value: Value) -> Iterator[Case]:
        text = value.json if value.text is None else value.text.encode("utf-8", "surrogatepass")
        if len(text) > HEADER_BYTES_MAX or b"\n" in text or b"\r" in text:
            return
        method, target = self._address(field, None)
        body = json.dumps({"command": ["true"]}).encode() if method == "POST" else b""
        headers = ((str(field.path[0]), text),)
        yield Case(field.operation, field.name, value.kind, method, target, body, headers)

    def _case(self, field: Field, kind: str, *, body: bytes = b"", value: bytes = b"") -> Case:
        method, target = self._address(field, value)
        if not body and method == "POST":
            schemas = self._bodies(self.operations[field.operation])
            body = json.dumps(self.example(schemas[0])).encode() if schemas else b""
        return Case(field.operation, field.name or "(whole body)", kind, method, target, body)

    def _address(self, field: Field, value: bytes | None) -> tuple[str, bytes]:
        method, _, path = field.operation.partition(" ")
        target = path.encode()
        for name, known in self._known.items():
            is_it = field.where == "path" and field.path == (name,)
            shown = value if is_it and value is not None else known.encode()
            target = target.replace(f"{{{name}}}".encode(), shown)
        query: list[bytes] = []
        if field.where == "query":
            query.append(str(field.path[0]).encode() + b"=" + (value or b""))
        if path.endswith(ENDLESS) and field.path != ("follow",):
            query.append(b"follow=false")
        return method.upper(), target + (b"?" + b"&".join(query) if query else b"")


def _plain_example(schema: Schema) -> Any:
    """Return a good value of a schema that is neither an object nor a list."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "integer" | "number":
            return max(1, int(schema.get("minimum", schema.get("exclusiveMinimum", 0))))
        case "boolean":
            return False
        case _:
            found = [text for text in EXAMPLE_TEXTS if re.search(schema.get("pattern", ""), text)]
            assert found, f"no example of {schema}: add one to EXAMPLES"
            return found[0]


def _entered(at: Any, here: str | int, after: str | int) -> Any:
    """Return what is at a key, made where it is missing or of another kind."""
    wanted: Any = [] if isinstance(after, int) else {}
    if isinstance(here, int):
        if not at or type(at[0]) is not type(wanted):
            at[:1] = [wanted]
        return at[0]
    if type(at.get(here)) is not type(wanted):
        at[here] = wanted
    return at[here]


def _alternatives(schema: Schema, union: str, resolved: Any) -> list[Schema]:
    found = [resolved(one) for one in schema[union]]
    return [one for one in found if one.get("type") != "null"] or found


def _raw(text: bytes) -> bytes:
    """Return text for an address with nothing quoted but what would end the request line."""
    return re.sub(rb"[\x00-\x20?#]", lambda found: b"%%%02x" % found[0][0], text)
