"""Read YAML into values and line numbers, with the booleans of YAML 1.2.

PyYAML reads `no` as False, which would break Norway's tag; here only `true` and `false` are
booleans. Anchors are resolved, with a limit on how far they may expand a document.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

import yaml

from tenfold.model.fleet import finding

VALUES_MAX = 5_000_000
DEPTH_MAX = 100
"""Far more than any file that is read here needs. The composer of PyYAML recurses in C, where
nesting without a limit ends the process."""
_BASE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOOLEANS = {"true": True, "false": False}


class YamlError(ValueError):
    """An error in a YAML text, with its line."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class NestedTooDeep(YamlError):
    """A text with more than `DEPTH_MAX` levels."""


def parse(text: str) -> tuple[object, Callable[[finding.Path], int | None]]:
    """Return the values of a YAML text and a function from a path to its line."""
    with suppress(yaml.YAMLError):
        # Errors are reported below, by the same parser.
        _check_depth(text)
    loader = _BASE(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return {}, lambda path: None
        _check_growth(root, {}, set())
        values = _value(loader, root)
    except yaml.MarkedYAMLError as error:
        # Report an unclosed element where it starts, not at the end of the file.
        cut_off = "end of stream" in (error.problem or "")
        mark = (cut_off and error.context_mark) or error.problem_mark or error.context_mark
        raise YamlError(
            error.problem or "cannot be parsed", None if mark is None else mark.line + 1
        ) from None
    except yaml.YAMLError as error:
        raise YamlError(str(error).splitlines()[0], None) from None
    finally:
        loader.dispose()
    return values, lambda path: _line(root, path)


def _check_depth(text: str) -> None:
    """Raise if a text is nested too deeply. Events are read in a loop, so any depth is safe."""
    depth = 0
    for event in cast(Iterator[yaml.Event], yaml.parse(text, Loader=_BASE)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise NestedTooDeep("nested too deeply", event.start_mark.line + 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_growth(node: yaml.Node, sizes: dict[int, int], open_nodes: set[int]) -> int:
    """Count values with all anchors expanded; reject cycles and oversized expansions."""
    if id(node) in sizes:
        return sizes[id(node)]
    if id(node) in open_nodes:
        raise YamlError("an anchor refers to itself", node.start_mark.line + 1)
    open_nodes.add(id(node))
    children: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        children = node.value
    elif isinstance(node, yaml.MappingNode):
        children = [child for pair in node.value for child in pair]
    size = 1 + sum(_check_growth(child, sizes, open_nodes) for child in children)
    if size > VALUES_MAX:
        raise YamlError("its anchors expand to too many values", node.start_mark.line + 1)
    open_nodes.discard(id(node))
    sizes[id(node)] = size
    return size


def _value(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, child) for child in node.value]
    if isinstance(node, yaml.MappingNode):
        table: dict[str, object] = {}
        for key, child in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None:
                raise YamlError("a key is not plain text", key.start_mark.line + 1)
            if name in table:
                raise YamlError(f"duplicate key `{name}`", key.start_mark.line + 1)
            table[name] = _value(loader, child)
        return table
    assert isinstance(node, yaml.ScalarNode), "YAML has three kinds of node"
    text = node.value
    if node.tag == "tag:yaml.org,2002:bool":
        return _BOOLEANS.get(text.lower(), text)
    if node.tag == "tag:yaml.org,2002:timestamp" or node.style in ("'", '"', "|", ">"):
        return text
    try:
        return cast(object, loader.construct_object(node))
    except (ValueError, LookupError, AttributeError):
        # A tag that its text does not suit, such as `!!int` before nothing.
        return text


def _line(node: yaml.Node, path: finding.Path) -> int:
    """Return the line of the deepest part of a path that exists."""
    line = node.start_mark.line + 1
    for part in path:
        if isinstance(part, int):
            if not isinstance(node, yaml.SequenceNode) or part >= len(node.value):
                return line
            node = node.value[part]
            line = node.start_mark.line + 1
            continue
        if not isinstance(node, yaml.MappingNode):
            return line
        for key, child in node.value:
            if key.value == part:
                line, node = key.start_mark.line + 1, child
                break
        else:
            return line
    return line
