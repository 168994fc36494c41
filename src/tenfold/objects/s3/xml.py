"""XML in and out, without entities, and no deeper than S3 needs."""

import re
from collections.abc import Iterable, Iterator
from xml.parsers import expat

from msgspec import Struct, field

from tenfold.objects.s3.errors import S3Error

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
DEPTH_MAX = 10
ELEMENTS_MAX = 60_000

_ESCAPED = re.compile(r"[&<>\"\r\x00-\x08\x0b\x0c\x0e-\x1f]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"}


class Element(Struct):
    """An element that was read: its local name, text, attributes and children."""

    name: str
    text: str = ""
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    children: list["Element"] = field(default_factory=list["Element"])

    def first(self, name: str) -> "Element | None":
        """Return the first child of a name."""
        return next((child for child in self.children if child.name == name), None)

    def all(self, name: str) -> Iterator["Element"]:
        """Yield the children of a name."""
        return (child for child in self.children if child.name == name)

    def value(self, *path: str) -> str:
        """Return the text at the end of a path; empty if it is not there."""
        found: Element | None = self
        for name in path:
            found = None if found is None else found.first(name)
        return "" if found is None else found.text.strip()

    def has(self, name: str) -> bool:
        """Return whether there is a child of a name."""
        return self.first(name) is not None


class _Reader:
    def __init__(self) -> None:
        self.root: Element | None = None
        self._stack: list[Element] = []
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        element = Element(_local(name), "", {_local(k): v for k, v in attributes.items()})
        self._count += 1
        if len(self._stack) >= DEPTH_MAX or self._count > ELEMENTS_MAX:
            raise S3Error("MalformedXML")
        if self._stack:
            self._stack[-1].children.append(element)
        else:
            self.root = element
        self._stack.append(element)

    def end(self, name: str) -> None:
        del name
        self._stack.pop()

    def text(self, text: str) -> None:
        self._stack[-1].text += text


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _refuse(*_: object) -> None:
    raise S3Error("MalformedXML", "The XML must not declare a document type or entities.")


def read_xml(data: bytes, root: str) -> Element:
    """Parse a document whose root has the given name."""
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError):
        raise S3Error("MalformedXML") from None
    if reader.root is None or reader.root.name != root:
        raise S3Error("MalformedXML", f"The root of the XML must be {root}.")
    return reader.root


def escape(text: str) -> str:
    """Return text as the content of an element."""
    if _ESCAPED.search(text) is None:
        return text
    return _ESCAPED.sub(lambda match: _ENTITIES.get(match[0], f"&#{ord(match[0])};"), text)


def tag(name: str, text: object) -> str:
    """Return an element with text."""
    return f"<{name}>{escape(str(text))}</{name}>"


def node(name: str, *children: str) -> str:
    """Return an element with children."""
    return f"<{name}>{''.join(children)}</{name}>"


def maybe(name: str, text: object) -> str:
    """Return an element, or nothing where there is no text."""
    return tag(name, text) if text not in ("", None) else ""


def document(name: str, children: Iterable[str], attributes: str = "") -> bytes:
    """Return a whole document."""
    body = "".join(children)
    return f'{DECLARATION}<{name} xmlns="{NAMESPACE}"{attributes}>{body}</{name}>'.encode()


def boolean(value: bool) -> str:
    """Return a truth value as XML writes it."""
    return "true" if value else "false"
