"""Discovery documents: which groups, versions and resources are served.

Each group has its own documents: a client that asks for all groups in one answer (aggregated
discovery) falls back to them.
"""

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.state.resources import Registry, ResourceInfo
from hyperjob_sandbox.apiserver.transport.call import Reply, json_reply


def discover(registry: Registry, path: str, address: str) -> Reply | None:
    """Answer a discovery path; None when it is none, or names what is not served."""
    match path.strip("/").split("/"):
        case ["api"]:
            cidr = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
            return json_reply(
                {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [cidr]}
            )
        case ["api", "v1"]:
            return _resource_list(registry, "", "v1")
        case ["apis"]:
            groups = [_group(registry, group) for group in registry.groups() if group]
            return _document("APIGroupList", groups=groups)
        case ["apis", group] if group in registry.groups():
            return _document("APIGroup", **_group(registry, group))
        case ["apis", group, version] if version in registry.versions(group):
            return _resource_list(registry, group, version)
    return None


def _document(kind: str, **content: Json) -> Reply:
    return json_reply({"kind": kind, "apiVersion": "v1", **content})


def _group(registry: Registry, group: str) -> Object:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in registry.versions(group)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(registry: Registry, group: str, version: str) -> Reply:
    resources: list[Object] = []
    for info in registry.resources(group, version):
        resources.append(_resource(info))
        for name, sub in info.subresources.items():
            entry: Object = {
                "name": f"{info.plural}/{name}",
                "singularName": "",
                "namespaced": info.namespaced,
            }
            if sub.group or sub.version:
                entry |= {"group": sub.group, "version": sub.version}
            resources.append({**entry, "kind": sub.kind, "verbs": list(sub.verbs)})
    where = f"{group}/{version}" if group else version
    return _document("APIResourceList", groupVersion=where, resources=resources)


def _resource(info: ResourceInfo) -> Object:
    entry: Object = {
        "name": info.plural,
        "singularName": info.singular,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": list(info.verbs),
    }
    if info.short_names:
        entry["shortNames"] = list(info.short_names)
    if info.categories:
        entry["categories"] = list(info.categories)
    if "list" in info.verbs:
        entry["storageVersionHash"] = info.storage_hash
    return entry
