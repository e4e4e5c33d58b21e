"""How lists of builtin kinds merge: what the types' patch tags and list types say.

Custom resources have a schema that says it; builtin kinds are served here without one. Lists that
are not named here are atomic. A list is known by its own field and the nearest field above it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuiltinList:
    """Strategic merge patch's key and server-side apply's keys; no key at all: a set."""

    merge_key: str = ""
    map_keys: tuple[str, ...] = ()


_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_NAMED = BuiltinList("name", ("name",))


def _table() -> dict[tuple[str, str], BuiltinList]:
    table = {
        ("metadata", "ownerReferences"): BuiltinList("uid", ("uid",)),
        ("metadata", "finalizers"): BuiltinList(),
        ("spec", "volumes"): _NAMED,
        ("spec", "imagePullSecrets"): _NAMED,
        ("spec", "schedulingGates"): _NAMED,
        ("spec", "resourceClaims"): _NAMED,
        ("spec", "hostAliases"): BuiltinList("ip", ("ip",)),
        ("spec", "topologySpreadConstraints"): BuiltinList(
            "topologyKey", ("topologyKey", "whenUnsatisfiable")
        ),
        ("spec", "ports"): BuiltinList("port", ("port", "protocol")),
        ("spec", "podCIDRs"): BuiltinList(),
        ("status", "conditions"): BuiltinList("type", ("type",)),
        ("status", "addresses"): BuiltinList("type", ("type",)),
        ("status", "podIPs"): BuiltinList("ip", ("ip",)),
        ("", "secrets"): _NAMED,
        ("", "webhooks"): _NAMED,
        ("webhooks", "matchConditions"): _NAMED,
    }
    for parent in _CONTAINERS:
        table["spec", parent] = _NAMED
        table[parent, "env"] = _NAMED
        table[parent, "ports"] = BuiltinList("containerPort", ("containerPort", "protocol"))
        table[parent, "volumeMounts"] = BuiltinList("mountPath", ("mountPath",))
        table[parent, "volumeDevices"] = BuiltinList("devicePath", ("devicePath",))
    return table


BUILTIN_LISTS = _table()
