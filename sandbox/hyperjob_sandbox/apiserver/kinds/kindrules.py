"""What single built-in kinds check and complete beyond their defaults when they are written."""

import ipaddress

from hyperjob.api.field import FieldError
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.schema.crdvalidation import validate_definition
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.store import GroupResource

_SERVICES: GroupResource = ("", "services")
_NETWORK = ipaddress.ip_network("10.96.0.0/16")


def validate(obj: Object, resource: ResourceInfo, subresource: str) -> list[FieldError]:
    """Return what is wrong with an object by its kind's own rules."""
    if resource.storage == definitions.DEFINITIONS and not subresource:
        return list(validate_definition(obj))
    return []


def complete(core: Core, obj: Object, resource: ResourceInfo) -> None:
    """Complete a new or changed object that is found valid."""
    if resource.storage == definitions.DEFINITIONS:
        definitions.accept(obj)
    elif resource.storage == _SERVICES and obj["spec"].get("type") != "ExternalName":
        _assign_address(core, obj["spec"])


def _assign_address(core: Core, spec: Object) -> None:
    """Give a Service the lowest free cluster address, to which nothing routes."""
    if not spec.get("clusterIP"):
        services = core.store.collection(_SERVICES).select()
        used = {(stored.obj.get("spec") or {}).get("clusterIP") for stored in services}
        spec["clusterIP"] = next(str(host) for host in _NETWORK.hosts() if str(host) not in used)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["clusterIP"] != "None":
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
