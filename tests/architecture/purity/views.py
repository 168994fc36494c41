"""Deciders read a view of the fleet; whatever changes one, or what hangs from it, is found here."""

import ast
from collections.abc import Iterator

from architecture.purity.kinds import Kinds
from architecture.purity.sources import Module, Scope

CHANGING = {
    *("append", "add", "apply", "apply_all", "clear", "discard", "extend", "insert", "pop"),
    *("popitem", "remove", "setdefault", "sort", "update", "reverse", "__setitem__"),
    *("__delitem__", "__setattr__"),
}
SETTERS = {"setattr", "delattr", "force_setattr"}


def view_changed(module: Module, kinds: Kinds) -> Iterator[tuple[int, str, str]]:
    """Yield every statement that changes a `FleetView`, or makes another thing of it."""
    for node in module.nodes:
        match node:
            case ast.Attribute(value=inner, ctx=ast.Store() | ast.Del()):
                changed = inner
            case ast.Subscript(value=inner, ctx=ast.Store() | ast.Del()):
                changed = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in CHANGING:
                # `object.__setattr__(view, ...)` changes its argument.
                changed = node.args[0] if method == "__setattr__" and node.args else inner
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if (
                name in SETTERS
            ):
                changed = first
            case ast.Call(func=ast.Name(id="cast"), args=[_, inner]):
                changed = inner if _is_whole_view(inner, module.scope(node), kinds) else None
            case _:
                continue
        if changed is not None and _of_view(changed, module.scope(node), kinds, 0):
            yield node.lineno, "view-changed", f"`{ast.unparse(node)}` changes the view"


def _is_whole_view(node: ast.expr, scope: Scope, kinds: Kinds) -> bool:
    kind = kinds.of(node, scope)
    return kind is not None and kind.node is not None and kind.node.name == "FleetView"


def _of_view(node: ast.expr, scope: Scope, kinds: Kinds, depth: int) -> bool:
    """Whether an expression is a view, or part of one; a call on the way makes a copy."""
    if depth > 8:
        return False
    if _is_whole_view(node, scope, kinds):
        return True
    match node:
        case ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return _of_view(inner, scope, kinds, depth + 1)
        case ast.Name(id=name):
            holder = scope.holder(name)
            bindings = holder.names[name] if holder is not None else []
            return any(
                each.value is not None
                and not each.way
                and isinstance(each.value, ast.Attribute | ast.Subscript | ast.Name)
                and each.value is not node
                and _of_view(each.value, each.scope, kinds, depth + 1)
                for each in bindings
            )
        case _:
            return False
