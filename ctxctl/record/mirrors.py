"""Objects that stand in for others: a check of an interface looks at a class, not at `__getattr__`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def like(base: type, other: type) -> type:
    """A subclass of `base` that has the public methods of `other` by name; each asks `base.__getattr__`."""
    names = [name for name in dir(other) if not name.startswith("_") and not hasattr(base, name)]
    methods = {name: _forward(name) for name in names if callable(getattr(other, name, None))}
    return type(base.__name__, (base,), {"__module__": base.__module__, **methods})


def _forward(name: str) -> Callable[..., Any]:
    def forwarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.__getattr__(name)(*args, **kwargs)

    forwarded.__name__ = forwarded.__qualname__ = name
    return forwarded
