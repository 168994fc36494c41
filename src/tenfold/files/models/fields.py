"""Typed access to the keys of a HuggingFace config.

Null counts as absent, because configs write null for values derived from other keys.
"""

from collections.abc import Mapping

import msgspec

from tenfold.files.core.expectations import describe_value
from tenfold.model.errors import InputError

COUNT_MAX = 10**9
AMOUNT_MAX = 1e15


class Fields:
    """A config and its file name, so that errors can name both."""

    def __init__(self, config: Mapping[str, object], file: str) -> None:
        self._config = config
        self.file = file
        self.model_type = ""

    def with_defaults(self, defaults: Mapping[str, object]) -> "Fields":
        """Return these fields with values for the keys that are not given."""
        given = {key: value for key, value in self._config.items() if value is not None}
        fields = Fields({**defaults, **given}, self.file)
        fields.model_type = self.model_type
        return fields

    def get(self, key: str) -> object:
        """Return a value or None; a dot reaches into a nested table."""
        outer, _, inner = key.partition(".")
        value = self._config.get(outer)
        if not inner or value is None:
            return value
        return self.table(outer).get(inner)

    def table(self, key: str) -> dict[str, object]:
        """Return a nested table."""
        value = self._config.get(key)
        try:
            return msgspec.convert(value, dict[str, object])
        except (msgspec.ValidationError, RecursionError):
            raise self.wrong(key, "a table", value) from None

    def maybe(self, keys: tuple[str, ...], least: int = 1) -> int | None:
        """Return the first of these counts that is given; null counts as not given."""
        for key in keys:
            value = self.get(key)
            if value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool):
                raise self.wrong(key, "a whole number", value)
            if not least <= value <= COUNT_MAX:
                raise self.wrong(key, f"a whole number from {least} to {COUNT_MAX:,}", value)
            return value
        return None

    def amount(self, keys: tuple[str, ...]) -> float | None:
        """Return the first of these positive numbers that is given."""
        for key in keys:
            value = self.get(key)
            if value is None:
                continue
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise self.wrong(key, "a number", value)
            if not 0 < value <= AMOUNT_MAX:
                raise self.wrong(key, f"a number above 0 and up to {AMOUNT_MAX:g}", value)
            return float(value)
        return None

    def count(self, keys: tuple[str, ...]) -> int:
        """Return a count that the config must give under one of these keys."""
        value = self.maybe(keys)
        if value is None:
            raise self.missing(keys)
        return value

    def flag(self, keys: tuple[str, ...], default: bool) -> bool:
        """Return the first of these flags that is given."""
        for key in keys:
            value = self.get(key)
            if isinstance(value, bool):
                return value
            if value is not None:
                raise self.wrong(key, "true or false", value)
        return default

    def given(self, keys: tuple[str, ...]) -> str:
        """Return which of these keys the config uses."""
        return next((key for key in keys if self.get(key) is not None), keys[0])

    def missing(self, keys: tuple[str, ...]) -> InputError:
        """Return the error for a missing key."""
        first, *others = keys
        nor = f" (nor {', '.join(f'`{key}`' for key in others)})" if others else ""
        message = f"`{self.file}` has no `{first}`{nor}"
        return InputError("missing-key", message, f"add `{first}`", file=self.file, field=first)

    def wrong(self, key: str, expected: str, value: object) -> InputError:
        """Return the error for a value of the wrong type or size."""
        message = f"`{key}` in `{self.file}` must be {expected}, but is {describe_value(value)}"
        return InputError("wrong-type", message, f"write {expected}", file=self.file, field=key)

    def unsupported(self, key: str, what: str) -> InputError:
        """Return the error for a model that a shape cannot describe correctly."""
        message = f"`{self.file}` describes {what}, which is not supported"
        hint = "add the closest shape as a `[[model]]` row in your facts folder"
        return InputError("unsupported-model", message, hint, file=self.file, field=key)
