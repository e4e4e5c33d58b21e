"""What server-side apply must know of a type: which maps and lists merge, and by which keys.

The structural schema of a custom resource says it: `schemanode.Node` is such a type. Builtin kinds
are served without one: a list is known by its own field and the nearest field above it, as
`lists.yaml` has them.
"""

from functools import lru_cache
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.shipped import shipped

BUILTIN_LISTS: Final[dict[str, Object]] = shipped(__package__, "lists.yaml")["lists"]
"""How lists of built-in kinds merge, by `parent.field`."""
_FREE_MAPS: Final = frozenset(shipped(__package__, "lists.yaml")["maps"])
MISSING: Final = object()


class TypeInfo:
    """The type of one value and, through it, of everything below.

    The base is a type that follows the value: objects merge, lists do not.
    """

    __slots__ = ()

    @property
    def keys(self) -> tuple[str, ...] | None:
        """Give the keys of a list map, none for a set; None where lists are owned whole."""
        return None

    @property
    def atomic_map(self) -> bool:
        """Tell whether an object is owned whole."""
        return False

    def declared(self, name: str) -> bool:
        """Tell whether an object names this field, other than as a key of a map."""
        del name
        return False

    def below(self, name: str) -> "TypeInfo | None":
        """Return the type of a field; None where the type does not know it."""
        del name
        return self

    def item(self) -> "TypeInfo":
        """Return the type of a list's items."""
        return self

    def key_default(self, name: str) -> Json:
        """Return the default of a list map's key in its items, or MISSING."""
        del name
        return MISSING


DEDUCED: Final = TypeInfo()


class _Builtin(TypeInfo):
    """A builtin kind's value, known by its field and the one above it."""

    def __init__(self, parent: str, name: str) -> None:
        self._name = name
        self._how = BUILTIN_LISTS.get(f"{parent}.{name}")

    @property
    def keys(self) -> tuple[str, ...] | None:
        return None if self._how is None else tuple(self._how.get("keys", ()))

    def declared(self, name: str) -> bool:
        return self._name not in _FREE_MAPS

    def below(self, name: str) -> TypeInfo:
        return DEDUCED if self._name in _FREE_MAPS else _builtin(self._name, name)

    def key_default(self, name: str) -> Json:
        return "TCP" if name == "protocol" else MISSING


@lru_cache(maxsize=1024)
def _builtin(parent: str, name: str) -> _Builtin:
    return _Builtin(parent, name)


BUILTIN: Final = _builtin("-", "")
"""The type of a builtin kind."""
