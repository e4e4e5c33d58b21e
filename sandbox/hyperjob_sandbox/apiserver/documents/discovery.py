"""Discovery documents: which groups, versions and resources are served.

Built from the registry and cached until it changes.
"""

import hashlib

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.state.resources import Registry, ResourceInfo
from hyperjob_sandbox.apiserver.transport.call import Reply, json_reply
from hyperjob_sandbox.apiserver.transport.requestinfo import wants_aggregated_discovery


class Discovery:
    """Answers below /api and /apis that name no object."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._aggregated: dict[str, tuple[int, Reply]] = {}

    def answer(self, path: str, accept: str, address: str) -> Reply | None:
        """Answer a discovery path; None when it is none, or names what is not served."""
        parts = path.strip("/").split("/")
        match parts:
            case ["api"] | ["apis"]:
                if wants_aggregated_discovery(accept):
                    return self._aggregate(parts[0])
                if parts == ["apis"]:
                    groups = [self._group(group) for group in self._groups()]
                    return _document("APIGroupList", "v1", groups=groups)
                cidr = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
                return json_reply(
                    {
                        "kind": "APIVersions",
                        "versions": ["v1"],
                        "serverAddressByClientCIDRs": [cidr],
                    }
                )
            case ["api", "v1"]:
                return self._resource_list("", "v1")
            case ["apis", group] if group in self._registry.groups():
                return _document("APIGroup", "v1", **self._group(group))
            case ["apis", group, version] if version in self._registry.versions(group):
                return self._resource_list(group, version)
            case _:
                return None

    def _groups(self) -> list[str]:
        """List the named groups: those of built-in kinds come first, as clients prefer them."""
        return [group for group in self._registry.groups() if group]

    def _group(self, group: str) -> Object:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._registry.versions(group)
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resource_list(self, group: str, version: str) -> Reply:
        resources: list[Object] = []
        for info in self._registry.resources(group, version):
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
        return _document("APIResourceList", "v1", groupVersion=where, resources=resources)

    def _aggregate(self, root: str) -> Reply:
        cached = self._aggregated.get(root)
        if cached is not None and cached[0] == self._registry.changes:
            return cached[1]
        groups = [""] if root == "api" else self._groups()
        items = [self._aggregated_group(group) for group in groups]
        version = "apidiscovery.k8s.io/v2"
        reply = _document("APIGroupDiscoveryList", version, metadata={}, items=items)
        reply.content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        digest = hashlib.sha512(reply.body).hexdigest().upper()
        reply.headers = {"ETag": f'"{digest}"', "Vary": "Accept"}
        self._aggregated[root] = (self._registry.changes, reply)
        return reply

    def _aggregated_group(self, group: str) -> Object:
        versions: list[Object] = [
            {
                "version": version,
                "resources": [_aggregated(r) for r in self._registry.resources(group, version)],
                "freshness": "Current",
            }
            for version in self._registry.versions(group)
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _document(kind: str, api_version: str, **content: Json) -> Reply:
    return json_reply({"kind": kind, "apiVersion": api_version, **content})


def _resource(info: ResourceInfo) -> Object:
    entry: Object = {
        "name": info.plural,
        "singularName": info.singular,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": list(info.verbs),
    }
    _names(entry, info)
    if "list" in info.verbs:
        entry["storageVersionHash"] = info.storage_hash
    return entry


def _names(entry: dict[str, Json], info: ResourceInfo) -> None:
    if info.short_names:
        entry["shortNames"] = list(info.short_names)
    if info.categories:
        entry["categories"] = list(info.categories)


def _aggregated(info: ResourceInfo) -> Object:
    def kind(name: str, group: str, version: str) -> Object:
        return {"group": group, "version": version, "kind": name}

    # Built-in kinds leave the group and version of their own kind empty here.
    group, version = (info.group, info.version) if info.custom else ("", "")
    entry: Object = {
        "resource": info.plural,
        "responseKind": kind(info.kind, group, version),
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "singularResource": info.singular,
        "verbs": list(info.verbs),
    }
    _names(entry, info)
    if info.subresources:
        entry["subresources"] = [
            {
                "subresource": name,
                "responseKind": kind(sub.kind, sub.group or group, sub.version or version),
                "verbs": list(sub.verbs),
            }
            for name, sub in info.subresources.items()
        ]
    return entry
