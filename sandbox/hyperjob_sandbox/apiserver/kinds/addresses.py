"""Cluster addresses of Services: each gets the lowest that is free. Nothing routes to them."""

import ipaddress

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.state.store import GroupResource

SERVICES: GroupResource = ("", "services")
_NETWORK = ipaddress.ip_network("10.96.0.0/16")
HEADLESS = "None"


def assign(core: Core, service: Object) -> None:
    """Give a Service an address where it needs one and has none."""
    spec = service.setdefault("spec", {})
    if spec.get("type") == "ExternalName":
        return
    address = spec.get("clusterIP") or _free(core)
    spec["clusterIP"] = address
    spec.setdefault("clusterIPs", [address])
    if address != HEADLESS:
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")


def _free(core: Core) -> str:
    used = {
        (stored.obj.get("spec") or {}).get("clusterIP")
        for stored in core.store.collection(SERVICES).select()
    }
    return next(str(host) for host in _NETWORK.hosts() if str(host) not in used)
