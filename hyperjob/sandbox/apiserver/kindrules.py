"""What single built-in kinds do beyond their defaults when they are written."""

from hyperjob.api.meta import Object
from hyperjob.sandbox.apiserver import definitions
from hyperjob.sandbox.apiserver.core import Core
from hyperjob.sandbox.apiserver.resources import ResourceInfo


def created(core: Core, obj: Object, resource: ResourceInfo) -> None:
    """Complete a new object."""
    if resource.storage == definitions.DEFINITIONS:
        definitions.accept(obj, core.registry)


def updated(core: Core, new: Object, old: Object, resource: ResourceInfo) -> None:
    """Complete a changed object."""
    del old
    if resource.storage == definitions.DEFINITIONS:
        definitions.accept(new, core.registry)
