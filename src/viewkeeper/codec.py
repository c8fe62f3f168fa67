"""Frozen dataclasses as JSON and back: for definitions and plans in the ledger.

A value is tagged with the name of its class; only classes that were registered can come back, so reading
never runs anything but their constructors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

_TAG = "$"


class Codec:
    """Encodes and decodes values of the registered classes.

    >>> from viewkeeper.algebra.scalars import Column, Scalar
    >>> codec = Codec([Scalar, Column])
    >>> codec.encode(Scalar((Column("a"), " + 1")))
    {'$': 'Scalar', 'parts': [{'$': 'Column', 'name': 'a'}, ' + 1']}
    >>> codec.decode(codec.encode(Scalar((Column("a"), " + 1")))) == Scalar((Column("a"), " + 1"))
    True
    """

    def __init__(self, classes: Iterable[type]) -> None:
        self._classes = {cls.__name__: cls for cls in classes}

    def encode(self, value: Any) -> Json:
        """The value as JSON; a class that is not registered is a fault of the engine."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (tuple, list)):
            return [self.encode(item) for item in value]
        if isinstance(value, dict):
            return {str(key): self.encode(item) for key, item in value.items()}
        name = type(value).__name__
        if name not in self._classes:
            raise TypeError(f"{name} is not registered")
        if isinstance(value, Enum):
            return {_TAG: name, "value": self.encode(value.value)}
        if is_dataclass(value) and not isinstance(value, type):
            content = {each.name: self.encode(getattr(value, each.name)) for each in fields(value)}
            return {_TAG: name, **content}
        raise TypeError(f"{name} cannot be encoded")

    def decode(self, data: Json) -> Any:
        """The value again; lists become tuples."""
        if isinstance(data, list):
            return tuple(self.decode(item) for item in data)
        if not isinstance(data, dict):
            return data
        content = {key: self.decode(item) for key, item in data.items() if key != _TAG}
        if _TAG not in data:
            return content
        cls = self._classes[str(data[_TAG])]
        return cls(content["value"]) if issubclass(cls, Enum) else cls(**content)
