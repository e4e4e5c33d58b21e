"""Amounts of resources as Kubernetes reads them, and limits of what cannot be overcommitted.

Kubernetes and Volcano refuse a container that requests an accelerator without limiting it to the
same amount; the only value the limit can have is the request, so it is filled in.

A Pod may say `cpu: 0.5`; the schema of a custom resource refuses the fraction unless it is text,
in words that no person understands. It is written as text, as a Pod's own decoding does.
"""

from hyperjob.api.meta import Object
from webhook.defaulting.copying import edit, edit_items
from webhook.resourcenames import may_be_overcommitted


def default_pod_resources(spec: Object) -> Object:
    """Set `limits := requests` for accelerators in all containers of a pod."""
    spec = edit_items(spec, "initContainers", _default_container)
    return edit_items(spec, "containers", _default_container)


def _default_container(container: Object) -> Object:
    return edit(container, "resources", _default_resources)


def _default_resources(resources: Object) -> Object:
    for field in ("requests", "limits"):
        if isinstance(resources.get(field), dict):
            resources = edit(resources, field, _as_text)
    return _default_limits(resources)


def _as_text(amounts: Object) -> Object:
    fractions = {name: str(each) for name, each in amounts.items() if isinstance(each, float)}
    return {**amounts, **fractions} if fractions else amounts


def _default_limits(resources: Object) -> Object:
    requests = resources.get("requests")
    limits = resources.get("limits")
    if not isinstance(requests, dict) or not (limits is None or isinstance(limits, dict)):
        return resources
    missing = {
        name: amount
        for name, amount in requests.items()
        if not may_be_overcommitted(name) and (limits is None or limits.get(name) is None)
    }
    return {**resources, "limits": {**(limits or {}), **missing}} if missing else resources
