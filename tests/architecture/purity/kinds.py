"""What kind of thing an expression is, as far as the purity rules need to know.

Followed: annotations (also of attributes, parameters and results, and through aliases), values
that are assigned, items of containers, and attributes of classes of other modules. What is not
found out is `None`: such an expression is never taken for a set.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from architecture.purity.sources import Binding, Module, Scope

SETS = {"set", "frozenset", "Set", "AbstractSet", "MutableSet", "FrozenSet"}
MAPS = {"dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict", "Dict"}
LISTS = {
    *("list", "Sequence", "MutableSequence", "Iterable", "Iterator", "Collection", "deque"),
    *("Generator", "List", "Reversible", "ValuesView"),
}
WRAPPERS = {"Optional", "Final", "Annotated", "ClassVar", "Required", "NotRequired", "ReadOnly"}
SET_METHODS = {"union", "intersection", "difference", "symmetric_difference", "copy"}
SURE_SET_METHODS = {"union", "intersection", "symmetric_difference"}
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
SEQUENCE_MAKERS = {"list", "tuple", "sorted", "reversed", "iter"}


@dataclass(frozen=True)
class Kind:
    """A set, a container with what it holds, an object of a class, or a number from `id()`."""

    name: str
    of: tuple["Kind | None", ...] = ()
    module: Module | None = field(default=None, repr=False)
    node: ast.ClassDef | None = field(default=None, repr=False)


SET = Kind("set")
IDENTITY = Kind("identity")


class Kinds:
    """Kinds of the expressions of some modules, which may name classes of each other."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self._modules = {module.name: module for module in modules}
        self._attributes: dict[tuple[str, str], dict[str, list[Binding]]] = {}
        self._busy: set[tuple[int, str]] = set()
        self._known: dict[tuple[int, str], Kind | None] = {}
        self._cuts = 0
        """How often a name was met again while it was being found out."""
        self._everywhere: dict[str, bool] = {}
        """Attributes by name: whether every class that has one of the name has a set there."""
        for module in modules:
            for node in module.classes.values():
                self._collect(module, node)
        self._agree()

    def of(self, node: ast.expr, scope: Scope) -> Kind | None:
        """Return the kind of an expression that is evaluated in `scope`."""
        match node:
            case ast.Set() | ast.SetComp():
                return SET
            case ast.Name(id=name):
                return self._name(name, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.BitXor() | ast.Sub()):
                return self._operator(node, scope)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.of(value, scope)
            case ast.List() | ast.Tuple() | ast.Dict():
                return self._display(node, scope)
            case _:
                return self._branching(node, scope)

    def _display(self, node: ast.List | ast.Tuple | ast.Dict, scope: Scope) -> Kind:
        if isinstance(node, ast.Tuple):
            return Kind("tuple", tuple(self.of(each, scope) for each in node.elts))
        if isinstance(node, ast.List):
            return Kind("list", (_best(self.of(each, scope) for each in node.elts),))
        return Kind("map", (_best(self.of(each, scope) for each in node.values),))

    def _branching(self, node: ast.expr, scope: Scope) -> Kind | None:
        match node:
            case ast.BoolOp(values=values):
                return _best(self.of(each, scope) for each in values)
            case ast.IfExp(body=body, orelse=other):
                return _best([self.of(body, scope), self.of(other, scope)])
            case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
                return Kind("list", (self.of(item, scope.module.scope(item)),))
            case ast.DictComp(value=value):
                return Kind("map", (self.of(value, scope.module.scope(value)),))
            case _:
                return None

    def taken_as(self, call: ast.Call, argument: ast.expr, scope: Scope) -> Kind | None:
        """Return as what one of our functions takes an argument."""
        function, module = self._function(call.func, scope)
        if function is None or module is None:
            return None
        listed = [*function.args.posonlyargs, *function.args.args]
        if isinstance(call.func, ast.Attribute) and listed[:1] and listed[0].arg == "self":
            listed = listed[1:]
        named = {each.arg: each for each in [*listed, *function.args.kwonlyargs]}
        stated = [each.arg for each in call.keywords if each.value is argument]
        if stated:
            found = named.get(stated[0] or "")
        else:
            place = call.args.index(argument) if argument in call.args else len(listed)
            found = listed[place] if place < len(listed) else None
        return self.annotated(found.annotation, module) if found is not None else None

    def _function(
        self, node: ast.expr, scope: Scope
    ) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | None, Module | None]:
        if isinstance(node, ast.Name):
            home, found = self._origin(node.id, scope.module)
            return (home.functions.get(found), home) if home is not None else (None, None)
        if isinstance(node, ast.Attribute):
            base = self.of(node.value, scope)
            if base is not None and base.node is not None:
                for each in base.node.body:
                    is_function = isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                    if is_function and each.name == node.attr:
                        return each, base.module
        return None, None

    def annotated(self, node: ast.expr | None, module: Module) -> Kind | None:
        """Return the kind that an annotation names."""
        match node:
            case ast.Constant(value=str(text)):
                return self.annotated(ast.parse(text, mode="eval").body, module)
            case ast.BinOp(left=left, right=right):
                return _best([self.annotated(left, module), self.annotated(right, module)])
            case ast.Name() | ast.Attribute():
                return self._named(node, module)
            case ast.Subscript(value=base, slice=inside):
                arguments = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                return self._generic(base, arguments, module)
            case _:
                return None

    def _named(self, node: ast.Name | ast.Attribute, module: Module) -> Kind | None:
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in SETS and name not in module.classes:
            return SET
        if name in MAPS:
            return Kind("map", (None,))
        if name in LISTS:
            return Kind("list", (None,))
        home, found = self._origin(name, module)
        if home is None:
            return None
        if found in home.classes:
            return Kind("object", module=home, node=home.classes[found])
        for statement in home.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=alias)], value=value) if alias == found:
                    return self._alias(value, home, found)
                case ast.AnnAssign(target=ast.Name(id=alias), value=ast.expr() as value) if (
                    alias == found
                ):
                    return self._alias(value, home, found)
                case _:
                    pass
        return None

    def _alias(self, value: ast.expr, home: Module, name: str) -> Kind | None:
        key = (id(home), name)
        if key in self._busy or isinstance(value, ast.Constant | ast.Call):
            return None
        self._busy.add(key)
        try:
            return self.annotated(value, home)
        finally:
            self._busy.discard(key)

    def _generic(
        self, base: ast.expr, arguments: Sequence[ast.expr], module: Module
    ) -> Kind | None:
        name = base.id if isinstance(base, ast.Name) else getattr(base, "attr", "")
        if name in SETS:
            return Kind("set", (self.annotated(arguments[0], module),))
        if name in MAPS:
            return Kind("map", (self.annotated(arguments[-1], module),))
        if name in LISTS:
            return Kind("list", (self.annotated(arguments[0], module),))
        if name in WRAPPERS:
            return self.annotated(arguments[0], module)
        if name == "tuple":
            items = tuple(self.annotated(each, module) for each in arguments)
            repeats = isinstance(arguments[-1], ast.Constant) and arguments[-1].value is Ellipsis
            return Kind("list", items[:1]) if repeats else Kind("tuple", items)
        if name == "Callable":
            return Kind("function", (self.annotated(arguments[-1], module),))
        return self.annotated(base, module) if isinstance(base, ast.Name) else None

    def _origin(self, name: str, module: Module) -> tuple[Module | None, str]:
        """Return the module that defines a name used in this one, and its name there."""
        for _ in range(8):
            if name in module.classes or name in module.functions:
                return module, name
            target = module.imported.get(name)
            if target is None:
                return (module, name) if name in module.top.names else (None, name)
            home, _, found = target.rpartition(".")
            if home not in self._modules:
                return None, name
            module, name = self._modules[home], found
        return None, name

    def _name(self, name: str, scope: Scope) -> Kind | None:
        holder = scope.holder(name)
        if holder is None:
            return None
        inside = holder.class_around()
        if name in ("self", "cls") and inside is not None:
            return Kind("object", module=scope.module, node=inside)
        return self._once((id(holder), name), holder.names[name])

    def _once(self, key: tuple[int, str], bindings: Sequence[Binding]) -> Kind | None:
        """Return what a name is bound to; None to itself, while that is being found out."""
        if key in self._known:
            return self._known[key]
        if key in self._busy:
            self._cuts += 1
            return None
        before = self._cuts
        self._busy.add(key)
        found = self._bound(bindings)
        self._busy.discard(key)
        if not self._busy or self._cuts == before:
            self._known[key] = found
        return found

    def _bound(self, bindings: Sequence[Binding]) -> Kind | None:
        stated = [each for each in bindings if each.annotation is not None]
        return _best(self._binding(each) for each in stated or bindings)

    def _binding(self, each: Binding) -> Kind | None:
        if each.annotation is not None:
            return self.annotated(each.annotation, each.scope.module)
        if each.value is None:
            return None
        found = self.of(each.value, each.scope)
        for step in each.way:
            found = _item(found) if step == "item" else _place(found, step)
        return found

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Kind | None:
        base = self.of(node.value, scope)
        if base is not None and base.name == "object":
            return self._member(base, node.attr)
        if base is None and self._everywhere.get(node.attr):
            return SET
        return None

    def _member(self, base: Kind, name: str, depth: int = 0) -> Kind | None:
        assert base.module is not None
        assert base.node is not None
        bindings = self._attributes[(base.module.name, base.node.name)].get(name)
        if bindings is not None:
            return self._once((id(base.node), name), bindings)
        for each in base.node.bases if depth < 8 else []:
            above = self.annotated(each, base.module)
            if above is not None and above.name == "object":
                found = self._member(above, name, depth + 1)
                if found is not None:
                    return found
        return None

    def _call(self, node: ast.Call, scope: Scope) -> Kind | None:
        match node.func:
            case ast.Name(id=name) if scope.holder(name) is None:
                return self._builtin(name, node, scope)
            case ast.Subscript(value=ast.Name(id=name)) if name in SETS:
                return SET
            case ast.Name(id="cast") if len(node.args) == 2:
                return self.annotated(node.args[0], scope.module)
            case ast.Name(id="defaultdict") if node.args:
                return Kind("map", (self._made_by(node.args[0], scope),))
            case ast.Name(id=name):
                called = self.of(node.func, scope)
                if called is not None:
                    return called.of[0] if called.name == "function" else None
                return self._result(name, scope)
            case ast.Attribute(value=base, attr=method):
                return self._method(self.of(base, scope), method)
            case _:
                return None

    def _made_by(self, node: ast.expr, scope: Scope) -> Kind | None:
        if isinstance(node, ast.Lambda):
            return self.of(node.body, scope.module.scope(node.body))
        return SET if isinstance(node, ast.Name) and node.id in SETS else None

    def _builtin(self, name: str, node: ast.Call, scope: Scope) -> Kind | None:
        if name in ("set", "frozenset"):
            return SET
        if name == "id":
            return IDENTITY
        arguments = [_item(self.of(each, scope)) for each in node.args]
        if name in SEQUENCE_MAKERS and arguments:
            return Kind("list", (arguments[0],))
        if name == "enumerate" and arguments:
            return Kind("list", (Kind("tuple", (None, arguments[0])),))
        if name == "zip":
            return Kind("list", (Kind("tuple", tuple(arguments)),))
        if name == "next" and arguments:
            return arguments[0]
        return None

    def _result(self, name: str, scope: Scope) -> Kind | None:
        home, found = self._origin(name, scope.module)
        if home is None:
            return None
        if found in home.classes:
            return Kind("object", module=home, node=home.classes[found])
        function = home.functions.get(found)
        return self.annotated(function.returns, home) if function else None

    def _method(self, base: Kind | None, method: str) -> Kind | None:
        if base is None:
            return (
                SET if method in SURE_SET_METHODS or self._everywhere.get(f"{method}()") else None
            )
        if base.name == "set":
            return base if method in SET_METHODS else None
        if base.name == "map":
            match method:
                case "get" | "setdefault" | "pop":
                    return base.of[0]
                case "values":
                    return Kind("list", base.of)
                case "items":
                    return Kind("list", (Kind("tuple", (None, base.of[0])),))
                case "keys":
                    return Kind("keys")
                case "copy":
                    return base
                case _:
                    return None
        if base.name == "list" and method in ("pop", "popleft"):
            return base.of[0]
        return self._member(base, f"{method}()") if base.name == "object" else None

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Kind | None:
        base = self.of(node.value, scope)
        if base is None:
            return None
        if base.name == "tuple" and isinstance(node.slice, ast.Constant):
            return _place(base, node.slice.value)
        if base.name in ("map", "list"):
            return base if isinstance(node.slice, ast.Slice) else base.of[0]
        return None

    def _operator(self, node: ast.BinOp, scope: Scope) -> Kind | None:
        """Sets stay sets under their operators; those of two dictionaries' keys make one."""
        sides = [self.of(node.left, scope), self.of(node.right, scope)]
        if any(side is not None and side.name in ("set", "keys") for side in sides):
            return SET
        for side in (node.left, node.right):
            match side:
                case ast.Call(func=ast.Attribute(attr="keys" | "items"), args=[]):
                    return SET
                case _:
                    pass
        return _best(sides)

    def _collect(self, module: Module, node: ast.ClassDef) -> None:
        """List what every attribute and method of a class is bound to."""
        found = self._attributes.setdefault((module.name, node.name), {})
        for inner in ast.walk(node):
            match inner:
                case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                    binding = Binding(module.scope(inner), annotation=inner.annotation)
                case ast.AnnAssign(target=ast.Name(id=name)) if inner in node.body:
                    binding = Binding(module.scope(inner), annotation=inner.annotation)
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
                    binding = Binding(module.scope(inner), value=inner.value)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if (
                    inner in node.body
                ):
                    if not _is_property(inner):
                        name = f"{name}()"
                    binding = Binding(module.scope(inner), annotation=inner.returns)
                case _:
                    continue
            found.setdefault(name, []).append(binding)

    def _agree(self) -> None:
        for members in self._attributes.values():
            for name, bindings in members.items():
                kind = self._bound(bindings)
                is_set = kind is not None and kind.name == "set"
                self._everywhere[name] = self._everywhere.get(name, True) and is_set


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = [
        each.id if isinstance(each, ast.Name) else getattr(each, "attr", "")
        for each in node.decorator_list
    ]
    return any(name in ("property", "cached_property") for name in names)


def _best(kinds: Iterable[Kind | None]) -> Kind | None:
    """Return a set if any is one, else the first that is known: unions and branches meet here."""
    known = [kind for kind in kinds if kind is not None]
    sets = [kind for kind in known if kind.name == "set"]
    return sets[0] if sets else known[0] if known else None


def _item(kind: Kind | None) -> Kind | None:
    """Return what a loop over it gives; a dictionary gives its keys."""
    if kind is None or kind.name == "map" or not kind.of:
        return None
    return _best(kind.of) if kind.name == "tuple" else kind.of[0]


def _place(kind: Kind | None, step: object) -> Kind | None:
    if kind is None or not isinstance(step, int):
        return None
    if kind.name == "tuple":
        return kind.of[step] if -len(kind.of) <= step < len(kind.of) else None
    return kind.of[0] if kind.name == "list" and kind.of else None
