"""What single built-in kinds check and complete beyond their defaults when they are written."""

from hyperjob.api.field import FieldError
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.kinds import addresses, definitions
from hyperjob_sandbox.apiserver.schema.crdvalidation import validate_definition
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo


def validate(obj: Object, resource: ResourceInfo, subresource: str) -> list[FieldError]:
    """Return what is wrong with an object by its kind's own rules."""
    if resource.storage == definitions.DEFINITIONS and not subresource:
        return list(validate_definition(obj))
    return []


def created(core: Core, obj: Object, resource: ResourceInfo) -> None:
    """Complete a new object that is found valid."""
    if resource.storage == definitions.DEFINITIONS:
        definitions.accept(obj)
    elif resource.storage == addresses.SERVICES:
        addresses.assign(core, obj)


def updated(core: Core, new: Object, resource: ResourceInfo) -> None:
    """Complete a changed object that is found valid."""
    if resource.storage == definitions.DEFINITIONS:
        definitions.accept(new)
    elif resource.storage == addresses.SERVICES:
        addresses.assign(core, new)
