"""Defaults of resources: the limits of devices, and fractions as text.

Kubernetes and Volcano refuse a container that requests an accelerator without an equal limit. The
limit can only be the request, which is therefore its default.

A Pod may have `cpu: 0.5`. The schema of a custom resource refuses a fraction as a number:
defaulting writes it as text, as the decoding of a Pod does.
"""

from hyperjob_core.api.meta import Object
from hyperjob_rules.defaulting.copying import edit, edit_items
from hyperjob_rules.resourcenames import may_be_overcommitted


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
