"""The owner of an object whose name can be foreseen.

What the controller creates for a HyperJob has it as the controller in its ownerReferences.
"""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, objects, string


class ForeignObjectError(Exception):
    """An object of another owner has the name; the text has the object and the next step."""


def is_controlled(found: Object, uid: str) -> bool:
    """Return whether the object with this UID is the controller of another."""
    return bool(uid) and any(
        each.get("uid") == uid and each.get("controller") is True
        for each in objects(at(found, "metadata", "ownerReferences"))
    )


def named(kind: str, found: Object) -> str:
    """Return an object for an error: its kind, with its namespace and its name."""
    namespace = string(at(found, "metadata", "namespace"))
    name = string(at(found, "metadata", "name"))
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
