"""Order that is not the same in every process: that of sets, and that of `id()`."""

import ast
from collections.abc import Iterator

from architecture.purity.kinds import IDENTITY, Kinds
from architecture.purity.sources import Module

FREE = {"any", "all", "sorted", "set", "frozenset", "len", "min", "max", "bool", "isinstance"}
"""Calls whose result does not depend on the order of what they are given."""
PASSING = {"list", "tuple", "iter", "map", "filter", "chain"}
"""Calls that pass the order on: free where what takes their result is."""
ORDERED = {
    *PASSING,
    *("enumerate", "zip", "sum", "fsum", "next", "dict", "deque", "islice", "fromkeys", "join"),
    *("extend", "extendleft", "array", "asarray", "fromiter", "Counter", "reduce", "OrderedDict"),
    *("from_iterable", "accumulate", "product", "permutations", "combinations", "cycle"),
    *("str", "repr", "format", "encode", "writelines", "groupby", "batched", "pairwise"),
    *("zip_longest", "starmap", "takewhile", "dropwhile", "mean", "median", "nsmallest"),
    *("nlargest", "merge", "concatenate", "prod"),
}
"""Calls whose result, or whose last digits, depend on it."""
SET_BUILDERS = {
    *("update", "union", "intersection", "difference", "symmetric_difference", "issubset"),
    *("issuperset", "isdisjoint", "difference_update", "intersection_update"),
}
BY_KEY = {"get", "pop", "setdefault", "add", "discard", "remove", "append"}
"""Methods that look something up by a number from `id()`, or keep it for that."""


def set_iteration(module: Module, kinds: Kinds) -> Iterator[tuple[int, str, str]]:
    """Yield where the order of a set gets out."""
    for node in module.nodes:
        if not isinstance(node, ast.expr):
            continue
        kind = kinds.of(node, module.scope(node))
        if kind is not None and kind.name == "set" and _gets_out(module, node, kinds):
            yield node.lineno, "set-order", f"`{ast.unparse(node)}` is a set: sort it"


def _gets_out(module: Module, node: ast.expr, kinds: Kinds) -> bool:
    parent = module.parent(node)
    match parent:
        case ast.For(iter=it) | ast.AsyncFor(iter=it):
            return it is node
        case ast.comprehension(iter=it):
            return it is node and not _comprehended_freely(module, parent, kinds)
        case ast.Starred():
            outer = module.parent(parent)
            return not (isinstance(outer, ast.Set) or _is_free_call(module, outer, kinds))
        case ast.Assign(targets=targets):
            return any(isinstance(each, ast.Tuple | ast.List) for each in targets)
        case ast.AugAssign(op=ast.Add(), value=value):
            return value is node
        case ast.YieldFrom() | ast.FormattedValue():
            return True
        case ast.Attribute(attr="pop"):
            outer = module.parent(parent)
            return isinstance(outer, ast.Call) and outer.func is parent and not outer.args
        case ast.Call():
            return node in parent.args and _call_orders(module, parent, node, kinds)
        case ast.keyword():
            call = module.parent(parent)
            return isinstance(call, ast.Call) and _forgets(module, call, node, kinds)
        case _:
            return False


def _comprehended_freely(module: Module, clause: ast.AST, kinds: Kinds) -> bool:
    """Whether a comprehension makes a set, or goes straight into a call that is free."""
    made = module.parent(clause)
    if isinstance(made, ast.SetComp):
        return True
    return isinstance(made, ast.ListComp | ast.GeneratorExp) and _is_free_call(
        module, module.parent(made), kinds
    )


def _call_orders(module: Module, call: ast.Call, node: ast.expr, kinds: Kinds) -> bool:
    name = _called(call)
    if name in FREE or name in SET_BUILDERS:
        return not _is_free_call(module, call, kinds)
    if name in PASSING:
        return not _is_free_call(module, module.parent(call), kinds)
    return name in ORDERED or _forgets(module, call, node, kinds)


def _forgets(module: Module, call: ast.Call, node: ast.expr, kinds: Kinds) -> bool:
    """Whether one of our functions takes a set as something that has an order."""
    taken = kinds.taken_as(call, node, module.scope(call))
    return taken is not None and taken.name == "list"


def _is_free_call(module: Module, call: ast.AST | None, kinds: Kinds) -> bool:
    if not isinstance(call, ast.Call):
        return False
    name = _called(call)
    if name in FREE and isinstance(call.func, ast.Name):
        # With a key, what compares alike stays in the order of the set.
        return not any(each.arg == "key" for each in call.keywords)
    if name in PASSING:
        return _is_free_call(module, module.parent(call), kinds)
    if name in SET_BUILDERS and isinstance(call.func, ast.Attribute):
        taken = kinds.of(call.func.value, module.scope(call))
        return taken is not None and taken.name == "set"
    return False


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def ordered_by_identity(module: Module, kinds: Kinds) -> Iterator[tuple[int, str, str]]:
    """Yield where a number from `id()` does more than look something up."""
    for node in module.nodes:
        if isinstance(node, ast.Name) and node.id == "id" and isinstance(node.ctx, ast.Load):
            parent = module.parent(node)
            is_called = isinstance(parent, ast.Call) and parent.func is node
            if module.scope(node).holder("id") is None and not is_called:
                yield node.lineno, "hash-order", "`id` as a key orders by addresses of memory"
        if _is_identity(module, node, kinds) and not _looks_up(module, node):
            yield node.lineno, "hash-order", f"`{ast.unparse(node)}` is an address of memory"


def _is_identity(module: Module, node: ast.AST, kinds: Kinds) -> bool:
    is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    if not is_read and not isinstance(node, ast.Call):
        return False
    return kinds.of(node, module.scope(node)) == IDENTITY


def _looks_up(module: Module, node: ast.expr) -> bool:
    match module.parent(node):
        case ast.Subscript(slice=place):
            return place is node
        case ast.Dict(keys=keys):
            return node in keys
        case ast.DictComp(key=key):
            return key is node
        case ast.SetComp() | ast.Set() | ast.Assign() | ast.NamedExpr():
            return True
        case ast.Compare(ops=ops):
            return all(isinstance(each, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for each in ops)
        case ast.Call(func=ast.Attribute(attr=method), args=[first, *_]):
            return method in BY_KEY and first is node
        case _:
            return False
