"""The built-in kinds: what `kinds.yaml` says of them."""

from functools import cache, partial

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.kinds.defaults import fill
from hyperjob_sandbox.apiserver.kinds.printers import column
from hyperjob_sandbox.apiserver.printing import NAME_COLUMN
from hyperjob_sandbox.apiserver.schema.scale import Scale
from hyperjob_sandbox.apiserver.shipped import shipped
from hyperjob_sandbox.apiserver.state.resources import ALL_VERBS, ResourceInfo, Subresource


@cache
def builtin_resources() -> tuple[ResourceInfo, ...]:
    """Return every built-in resource."""
    return tuple(
        _resource(*where.rpartition("/")[::2], plural, said)
        for where, kinds in shipped(__package__, "kinds.yaml").items()
        for plural, said in kinds.items()
    )


def _resource(group: str, version: str, plural: str, said: Object) -> ResourceInfo:
    kind: str = said["kind"]
    subresources = {
        name: Subresource(below, where, number, tuple(verbs))
        for name, (below, verbs, where, number) in said.get("subresources", {}).items()
    }
    if said.get("status"):
        subresources["status"] = Subresource(kind)
    if said.get("scale"):
        subresources["scale"] = Subresource("Scale", "autoscaling", "v1")
    return ResourceInfo(
        group=group,
        version=version,
        plural=plural,
        singular=kind.lower(),
        kind=kind,
        namespaced=said.get("namespaced", False),
        short_names=tuple(said.get("short", ())),
        categories=tuple(said.get("categories", ())),
        verbs=tuple(said.get("verbs", ALL_VERBS)),
        subresources=dict(sorted(subresources.items())),
        columns=(
            tuple(map(column, said["columns"]))
            if plural == "events"
            else (NAME_COLUMN, *map(column, said.get("columns", ["Age"])))
        ),
        generation=said.get("generation", False),
        dns_names=said.get("names") != "path",
        default=partial(fill, defaults=said.get("defaults", {})),
        scale=Scale("spec.replicas", "status.replicas") if said.get("scale") else None,
        selectable=tuple(said.get("fields", ())),
    )
