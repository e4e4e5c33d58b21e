"""The merge of two objects, where lists whose items have a key merge by that key. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, objects, string

KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("replicatedJobs", "tasks", "containers", "initContainers"), "name"),
    **dict.fromkeys(("imagePullSecrets", "env", "volumes"), "name"),
    "volumeMounts": "mountPath",
}
"""The lists whose items have a key, and its field."""
_WHOLE: Final = frozenset({"env", "volumes"})
"""Lists whose items are replaced as a whole: an item has one of several kinds of source."""


def merged(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    keys: Mapping[str, str] = KEYS,
    replaced: frozenset[str] = frozenset(),
    grows: bool = True,
) -> Object:
    """Return an object with the fields of another one; None changes nothing.

    Items of equal key become one, new ones follow, and a list without keys is replaced. So are the
    objects in the fields `replaced`. `grows` is whether lists get items that they lack; `env` and
    `volumes` always do.
    """
    more: Any = {"keys": keys, "replaced": replaced, "grows": grows}

    def value_of(name: str, before: object, value: object) -> object:
        if isinstance(value, Mapping):
            known = {} if name in replaced else mapping(before)
            return merged(known, value, **more)
        key = keys.get(name)
        if key is None or not isinstance(value, list | tuple):
            return value
        if not all(isinstance(each, Mapping) and key in each for each in value):
            return list(value)
        found = {string(each.get(key)): each for each in objects(before)}
        for each in value:
            which = string(each[key])
            if name in _WHOLE:
                found[which] = dict(each)
            elif grows or which in found:
                found[which] = merged(found.get(which, {}), each, **more)
        return list(found.values())

    changes = {name: value_of(name, old.get(name), value) for name, value in new.items()}
    return {**old, **{name: value for name, value in changes.items() if value is not None}}
