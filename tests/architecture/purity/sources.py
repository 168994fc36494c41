"""Source files as the purity rules read them: trees with parents, scopes, imports and bindings.

Scopes are those of the language. Which binding of a name is in force at a line is not asked: a name
that is a set anywhere in its scope counts as one everywhere in it.
"""

import ast
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Binding:
    """One place where a name gets its value: an annotation, or an expression and a way into it."""

    scope: "Scope"
    annotation: ast.expr | None = None
    value: ast.expr | None = None
    way: tuple[int | str, ...] = ()
    """How to get from the value to what is bound: `item` of an iterable, or a place in a tuple."""


@dataclass(eq=False)
class Scope:
    """Names of one module, class, function or comprehension."""

    module: "Module"
    node: ast.AST
    outer: "Scope | None"
    names: dict[str, list[Binding]] = field(default_factory=dict[str, list[Binding]])

    def bind(self, name: str, binding: Binding) -> None:
        self.names.setdefault(name, []).append(binding)

    def holder(self, name: str) -> "Scope | None":
        """Return the scope in which a name that is read here is bound; None: a built-in."""
        scope: Scope | None = self
        while scope is not None:
            # A class body is not a scope of the functions inside it.
            visible = scope is self or not isinstance(scope.node, ast.ClassDef)
            if visible and name in scope.names:
                return scope
            scope = scope.outer
        return None

    def around(self) -> "Scope":
        """Return where `:=` binds: comprehensions leave it to what is around them."""
        scope = self
        while isinstance(scope.node, COMPREHENSIONS) and scope.outer is not None:
            scope = scope.outer
        return scope

    def class_around(self) -> ast.ClassDef | None:
        """Return the class whose method this is, also for functions within a method."""
        scope: Scope | None = self
        while scope is not None:
            if isinstance(scope.node, ast.ClassDef):
                return scope.node
            scope = scope.outer
        return None


class Module:
    """One source file of the package, by its path below `src/tenfold`."""

    def __init__(self, path: Path, root: Path) -> None:
        inside = path.relative_to(root)
        self.place = inside.as_posix()
        self.room = inside.parts[0].removesuffix(".py")
        self.text = path.read_text()
        self.tree = ast.parse(self.text)
        names = inside.with_suffix("").parts
        self.package = ".".join(("tenfold", *names[:-1]))
        self.name = self.package if names[-1] == "__init__" else f"{self.package}.{names[-1]}"
        self.nodes: list[ast.AST] = []
        self.parents: dict[ast.AST, ast.AST] = {}
        self.scopes: dict[ast.AST, Scope] = {}
        self.imported: dict[str, str] = {}
        """Dotted origin of every name that an import binds, anywhere in the file."""
        self.top = Scope(self, self.tree, None)
        self._walk(self.tree, self.top)

    def __repr__(self) -> str:
        return self.place

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        return {node.name: node for node in self.nodes if isinstance(node, ast.ClassDef)}

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        return {node.name: node for node in self.tree.body if isinstance(node, kinds)}

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.parents.get(node)

    def scope(self, node: ast.AST) -> Scope:
        return self.scopes[node]

    def absolute(self, node: ast.ImportFrom) -> str:
        """Return the module that a `from` names, relative ones resolved."""
        if not node.level:
            return node.module or ""
        base = self.package.split(".")
        kept = base[: len(base) - node.level + 1]
        return ".".join([*kept, node.module] if node.module else kept)

    def dotted(self, node: ast.expr) -> str | None:
        """Return the full name behind `np.random.rand`, if it begins at an import."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.imported:
            return None
        holder = self.scope(node).holder(node.id)
        if holder is not None and not all(
            each.way == ("import",) for each in holder.names[node.id]
        ):
            return None
        return ".".join([self.imported[node.id], *reversed(parts)])

    def _walk(self, node: ast.AST, scope: Scope) -> None:
        self.nodes.append(node)
        self.scopes[node] = scope
        self._bind(node, scope)
        inner = scope
        if isinstance(node, (ast.ClassDef, *FUNCTIONS, *COMPREHENSIONS)):
            inner = Scope(self, node, scope)
        if isinstance(node, FUNCTIONS):
            self._parameters(node, inner)
        for child in ast.iter_child_nodes(node):
            self.parents[child] = node
            self._walk(child, self._scope_of(node, child, scope, inner))

    @staticmethod
    def _scope_of(node: ast.AST, child: ast.AST, scope: Scope, inner: Scope) -> Scope:
        """Return where a child is evaluated: decorators, bases and defaults stand outside."""
        if isinstance(node, COMPREHENSIONS) or inner is scope:
            return inner
        if isinstance(node, ast.Lambda):
            return inner if child is node.body else scope
        assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        return inner if child in node.body else scope

    def _parameters(self, node: ast.AST, inner: Scope) -> None:
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        listed = node.args
        for each in [*listed.posonlyargs, *listed.args, *listed.kwonlyargs]:
            inner.bind(each.arg, Binding(inner, annotation=each.annotation))
        for each in (listed.vararg, listed.kwarg):
            if each is not None:
                inner.bind(each.arg, Binding(inner))

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._target(target, scope, value, ())
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                scope.bind(name, Binding(scope, annotation=annotation, value=value))
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                scope.around().bind(name, Binding(scope, value=value))
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                self._target(node.target, scope, node.iter, ("item",))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                scope.bind(node.name, Binding(scope))
            case ast.ExceptHandler(name=str(name)):
                scope.bind(name, Binding(scope))
            case ast.withitem(optional_vars=ast.expr() as target):
                self._target(target, scope, None, ())
            case ast.Import() | ast.ImportFrom():
                self._imported(node, scope)
            case _:
                pass

    def _imported(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for each in node.names:
            local = each.asname or each.name
            if isinstance(node, ast.ImportFrom):
                origin = f"{self.absolute(node)}.{each.name}"
            else:
                # `import a.b` binds `a`, `import a.b as c` binds `c` to `a.b`.
                local = each.asname or each.name.split(".")[0]
                origin = each.name if each.asname else local
            self.imported[local] = origin
            scope.bind(local, Binding(scope, way=("import",)))

    def _target(
        self, target: ast.expr, scope: Scope, value: ast.expr | None, way: tuple[int | str, ...]
    ) -> None:
        match target:
            case ast.Name(id=name):
                scope.bind(name, Binding(scope, value=value, way=way))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for place, each in enumerate(elements):
                    self._target(each, scope, value, (*way, place))
            case ast.Starred(value=inner):
                self._target(inner, scope, None, ())
            case _:
                pass
