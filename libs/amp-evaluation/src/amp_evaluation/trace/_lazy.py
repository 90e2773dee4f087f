"""Parts of a trace that are read from the wire only when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Loader = Callable[[], dict[str, Any]]
T = TypeVar("T", bound="Lazy")


class Lazy:
    """Fields that are absent from the instance are filled, all at once, by the loader the parser left there."""

    __slots__ = ()  # each class below has the dict of its instances itself

    def __getattr__(self, name: str) -> Any:
        # only reached when the instance has no such attribute: everything built by hand has all of them
        if name.startswith("__"):
            raise AttributeError(name)
        self._load()
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def _load(self) -> None:
        # two threads may both load: the values are equal, and the first to be set stay
        held = self.__dict__
        loader = held.get("_loader")
        if loader is not None:
            for key, value in loader().items():
                held.setdefault(key, value)
            held.pop("_loader", None)
            held.pop("_wire", None)  # a record holds its whole page in memory

    def __getstate__(self) -> dict[str, Any]:
        self._load()
        return dict(self.__dict__)


def lazily(kind: type[T], loader: Loader, **known: Any) -> T:
    """An instance with `known` set; the other fields come from `loader` on first use."""
    made = kind.__new__(kind)
    known["_loader"] = loader
    made.__dict__.update(known)
    return made
