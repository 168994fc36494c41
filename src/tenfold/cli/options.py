"""Build the options of a command from the fields of a struct.

The names, types, help texts and bounds come from the fields and their `Meta`. Options that are
typed in another form than the field stores (`30d` for seconds) are declared with the command.
"""

from collections.abc import Callable, Mapping
from inspect import Parameter as Argument
from inspect import Signature, signature
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

from cyclopts import Parameter, validators
from msgspec import NODEFAULT, Meta, Struct, structs

Q = TypeVar("Q", bound=Struct)
P = ParamSpec("P")


class Option(Struct, frozen=True, kw_only=True):
    """An option whose name or type on the command line differs from its field."""

    name: str
    typed: object = None
    """The type on the command line, if it differs from the field."""
    read: Callable[[Any, str], object] | None = None
    """Converts the typed value to the field; the option's name is passed for errors."""


def options_from(
    question: type[Q], options: Mapping[str, Option] | None = None
) -> Callable[[Callable[Concatenate[Q, P], None]], Callable[..., None]]:
    """Return a decorator that builds the first argument of a command from its options."""
    overrides = options or {}
    read = {name: one.read for name, one in overrides.items() if one.read is not None}
    fields = structs.fields(question)
    names = [field.name for field in fields]
    hints = get_type_hints(question, include_extras=True)
    own_parameters = [
        _argument(field, hints[field.name], overrides.get(field.name)) for field in fields
    ]

    def decorate(command: Callable[Concatenate[Q, P], None]) -> Callable[..., None]:
        def run(**kwargs: object) -> None:
            # Fields that were not given keep their defaults.
            fields_given = {name: kwargs.pop(name) for name in names if name in kwargs}
            for name in read.keys() & fields_given.keys():
                fields_given[name] = read[name](fields_given[name], overrides[name].name)
            command(question(**fields_given), **kwargs)  # pyright: ignore[reportCallIssue]

        hinted = get_type_hints(command, include_extras=True)
        rest = [
            argument.replace(annotation=hinted[argument.name])
            for argument in list(signature(command).parameters.values())[1:]
        ]
        arguments = sorted(
            [*own_parameters, *rest], key=lambda one: one.default is not Argument.empty
        )
        run.__signature__ = Signature(arguments)  # pyright: ignore[reportFunctionMemberAccess]
        run.__annotations__ = {one.name: one.annotation for one in arguments}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


def _argument(field: structs.FieldInfo, hint: object, option: Option | None) -> Argument:
    metas = _metas(hint)
    plain = _plain(hint)
    default = Argument.empty if field.default is NODEFAULT else field.default
    name = None if option is None else option.name
    if option is not None and option.typed is not None:
        plain = option.typed
        default = () if _is_tuple(plain) else None
    parameter = Parameter(
        name=name,
        help=next((meta.description for meta in metas if meta.description), None),
        validator=_bounds(metas),
        negative="" if plain is bool or _is_tuple(plain) else None,
    )
    annotation = Annotated[plain, parameter]
    return Argument(field.name, Argument.KEYWORD_ONLY, default=default, annotation=annotation)


def _metas(hint: object) -> list[Meta]:
    """Return the `Meta` of a field and of the parts of its type, outermost first."""
    direct = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Meta)]
    return [*reversed(direct), *(meta for part in get_args(hint) for meta in _metas(part))]


def _plain(hint: object) -> object:
    """Return a type without its metadata."""
    holder = type("holder", (), {"__annotations__": {"field": hint}})
    return get_type_hints(holder)["field"]


def _is_tuple(hint: object) -> bool:
    return getattr(hint, "__origin__", None) is tuple


def _bounds(metas: list[Meta]) -> validators.Number | None:
    names = {"ge": "gte", "gt": "gt", "le": "lte", "lt": "lt"}
    bounds: dict[str, float] = {}
    for meta in metas:
        for ours, theirs in names.items():
            bound: float | None = getattr(meta, ours)
            if bound is not None:
                bounds.setdefault(theirs, bound)
    return validators.Number(**bounds) if bounds else None
