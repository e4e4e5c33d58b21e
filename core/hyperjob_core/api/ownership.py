"""The owner of an object whose name can be foreseen.

What the controller creates for a HyperJob has it as the controller in its ownerReferences. An
object without such an owner has a label with the program that created it. No program of HyperJob
writes to or deletes an object without one of them.
"""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, objects, string, string_map

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
INSTALLER: Final = "hyperjob-install"
CERTS: Final = "hyperjob-certs"


class ForeignObjectError(Exception):
    """An object of another owner has the name; the text has the object and the next step."""


def manager_of(found: Object) -> str:
    """Return the program that created an object, by its label; "" without one."""
    return string_map(at(found, "metadata", "labels")).get(MANAGED_BY, "")


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
