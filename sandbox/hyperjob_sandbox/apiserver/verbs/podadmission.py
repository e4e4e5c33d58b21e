"""What admission plugins of the API server decide about a new pod: what it names, and quotas.

A ResourceQuota counts pods alone.
"""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.transport.call import Call

_QUOTAS = ("", "resourcequotas")
_PRIORITY_CLASSES = ("scheduling.k8s.io", "priorityclasses")
_RUNTIME_CLASSES = ("node.k8s.io", "runtimeclasses")
_ACCOUNTS = ("", "serviceaccounts")
_ENDED = ("Succeeded", "Failed")


def admit_pod(core: Core, call: Call, obj: Object) -> None:
    """Refuse a new pod that names what is not there or is beyond a quota; fill in its priority."""
    resource = call.resource
    if (resource.group, resource.plural) == ("", "pods"):
        _find_named(core, call, obj)
        _set_priority(core, obj)
        _check_quotas(core, call, obj)


def _find_named(core: Core, call: Call, obj: Object) -> None:
    namespace = call.info.namespace
    runtime = string(at(obj, "spec", "runtimeClassName"))
    account = string(at(obj, "spec", "serviceAccountName")) or "default"
    why = ""
    if runtime and core.store.collection(_RUNTIME_CLASSES).get(("", runtime)) is None:
        why = f'pod rejected: RuntimeClass "{runtime}" not found'
    elif (
        account != "default" and core.store.collection(_ACCOUNTS).get((namespace, account)) is None
    ):
        missing = f'serviceaccount "{account}" not found'
        why = f"error looking up service account {namespace}/{account}: {missing}"
    if why:
        raise errors.forbidden("", "pods", obj["metadata"]["name"], why)


def _set_priority(core: Core, obj: Object) -> None:
    name = string(at(obj, "spec", "priorityClassName"))
    if not name:
        return
    found = core.store.collection(_PRIORITY_CLASSES).get(("", name))
    if found is None:
        why = f"no PriorityClass with name {name} was found"
        raise errors.forbidden("", "pods", obj["metadata"]["name"], why)
    obj["spec"]["priority"] = found.obj["value"]


def _check_quotas(core: Core, call: Call, obj: Object) -> None:
    resource, namespace = call.resource, call.info.namespace
    for quota in core.store.collection(_QUOTAS).select(namespace):
        limit = at(quota.obj, "spec", "hard", "pods")
        if limit is None:
            continue
        pods = core.store.collection(resource.storage).select(namespace)
        used = sum(string(at(pod.obj, "status", "phase")) not in _ENDED for pod in pods)
        if used >= int(string(limit) or 0):
            name = quota.obj["metadata"]["name"]
            numbers = f"requested: pods=1, used: pods={used}, limited: pods={limit}"
            why = f"exceeded quota: {name}, {numbers}"
            raise errors.forbidden("", "pods", obj["metadata"]["name"], why)
