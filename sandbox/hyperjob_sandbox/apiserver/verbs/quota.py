"""ResourceQuotas: the number of pods of a namespace. Other resources of a quota are not counted."""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.transport.call import Call

_QUOTAS = ("", "resourcequotas")
_ENDED = ("Succeeded", "Failed")


def check_quota(core: Core, call: Call, obj: Object) -> None:
    """Refuse a new pod that exceeds a ResourceQuota of its namespace."""
    resource, namespace = call.resource, call.info.namespace
    if (resource.group, resource.plural) != ("", "pods"):
        return
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
