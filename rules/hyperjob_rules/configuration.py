"""The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration of HyperJob.

Chart, installer, sandbox and tests all use these objects.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import AFFINITY_GATED, AFFINITY_HELD, VCJOB_API_VERSION, VCJOB_KIND

MUTATE_HYPERJOB: Final = "/mutate-training-volcano-sh-v1alpha1-hyperjob"
VALIDATE_HYPERJOB: Final = "/validate-training-volcano-sh-v1alpha1-hyperjob"
MUTATE_RESOURCEBINDING: Final = "/mutate-work-karmada-io-v1alpha2-resourcebinding"
VALIDATE_TRAINJOB: Final = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
PATHS: Final = frozenset(
    {MUTATE_HYPERJOB, VALIDATE_HYPERJOB, MUTATE_RESOURCEBINDING, VALIDATE_TRAINJOB}
)
"""The URL paths of the webhooks, in the form of kubebuilder."""

# The API server calls mutating webhooks in the order of configuration names: HyperJob's must see a
# ResourceBinding before Volcano Global's (`volcano-…`), and is called again after that has
# overwritten the suspension.
MUTATING_NAME: Final = "hyperjob-mutating"
VALIDATING_NAME: Final = "hyperjob-validating"

TIMEOUT_SECONDS: Final = 5

_LABELS: Final = {
    "app.kubernetes.io/name": "hyperjob",
    "app.kubernetes.io/component": "webhook",
    "app.kubernetes.io/part-of": "hyperjob",
}

# A field may be absent or null at every level, and an error in a condition refuses the request;
# only has() and exists() are used, which every CEL implementation knows.
_HAS_OUR_NAME: Final = (
    "has(a.affinityName) && "
    f'(a.affinityName == "{AFFINITY_GATED}" || a.affinityName == "{AFFINITY_HELD}")'
)
_IS_GATED: Final = " && ".join(
    (
        "has(object.spec) && object.spec != null",
        "has(object.spec.resource) && object.spec.resource != null",
        f'has(object.spec.resource.kind) && object.spec.resource.kind == "{VCJOB_KIND}"',
        "has(object.spec.resource.apiVersion)",
        f'object.spec.resource.apiVersion == "{VCJOB_API_VERSION}"',
        "has(object.spec.placement) && object.spec.placement != null",
        "has(object.spec.placement.clusterAffinities)",
        "object.spec.placement.clusterAffinities != null",
        f"object.spec.placement.clusterAffinities.exists(a, {_HAS_OUR_NAME})",
    )
)
# A held gate stays held for most users, even if they remove the affinity name.
_WAS_GATED: Final = _IS_GATED.replace("object.", "oldObject.")
_IS_NOT_BEING_DELETED: Final = (
    "!has(object.metadata.deletionTimestamp) || object.metadata.deletionTimestamp == null"
)
# Removal of a finalizer does not depend on the webhook; a change of the spec does.
_CHANGES_SPEC: Final = "oldObject != null && object.spec != oldObject.spec"


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """The Service of the webhook, if it runs in the cluster of the API server that calls it."""

    namespace: str
    name: str
    port: int = 443


def configurations(
    *,
    url: str | None = None,
    service: ServiceReference | None = None,
    ca_bundle: bytes = b"",
    trainjobs: bool = False,
) -> tuple[Object, Object]:
    """Return the mutating and the validating configuration.

    Exactly one of `url` (base, `https://host[:port]`) and `service` is the address of the webhook;
    a Karmada API server reaches it only by `url`. An empty `ca_bundle` (PEM) is omitted, for
    cert-manager or `hyperjob-certs inject` to set. `trainjobs` adds the webhook that validates
    TrainJobs of Kubeflow Trainer. Raises ValueError for a wrong address.
    """
    if (url is None) == (service is None):
        raise ValueError("give either url or service")
    if url is not None and not url.startswith("https://"):
        raise ValueError(f"the webhook's url must start with https://, got {url!r}")

    def client(path: str) -> Object:
        return _client_config(path, url=url, service=service, ca_bundle=ca_bundle)

    return _mutating(client), _validating(client, trainjobs=trainjobs)


def _mutating(client: Callable[[str], Object]) -> Object:
    return _configuration(
        "MutatingWebhookConfiguration",
        MUTATING_NAME,
        [
            # Fail: members would refuse the sub-jobs of a HyperJob without defaults (no limits), or
            # start its pods one by one (minAvailable 0), and defaults in a later update would be a
            # forbidden change. With Ignore the request would fail as well: the validating webhook
            # is the same process.
            _webhook("mhyperjob.training.volcano.sh", client(MUTATE_HYPERJOB))
            | {"rules": [_HYPERJOBS], "matchConditions": [_NOT_DELETED]}
            | {"reinvocationPolicy": "IfNeeded"},
            # Fail: Karmada would dispatch a ResourceBinding without a gate before its gang. The
            # conditions select only ResourceBindings of HyperJobs: an outage of the webhook affects
            # no others. The deletion of a ResourceBinding does not call the webhook.
            _webhook("mresourcebinding.training.volcano.sh", client(MUTATE_RESOURCEBINDING))
            | {"rules": [_RESOURCEBINDINGS], "matchConditions": [_GATED, _NOT_DELETED]}
            | {"reinvocationPolicy": "IfNeeded"},
        ],
    )


def _validating(client: Callable[[str], Object], *, trainjobs: bool) -> Object:
    return _configuration(
        "ValidatingWebhookConfiguration",
        VALIDATING_NAME,
        [
            _webhook("vhyperjob.training.volcano.sh", client(VALIDATE_HYPERJOB))
            | {"rules": [_HYPERJOBS], "matchConditions": [_NOT_DELETED_OR_CHANGED]},
            # Ignore: most TrainJobs may be Trainer's own, and the controller decides again.
            *(
                [
                    _webhook("vtrainjob.training.volcano.sh", client(VALIDATE_TRAINJOB))
                    | {"rules": [_TRAINJOBS], "failurePolicy": "Ignore"}
                ]
                if trainjobs
                else []
            ),
        ],
    )


def _rule(group: str, version: str, resource: str) -> Object:
    """Return a rule for the object itself, without subresources such as `status`."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [resource],
        "scope": "Namespaced",
    }


_HYPERJOBS: Final = _rule("training.volcano.sh", "v1alpha1", "hyperjobs")
_TRAINJOBS: Final = _rule("trainer.kubeflow.org", "v1alpha1", "trainjobs")
_RESOURCEBINDINGS: Final = _rule("work.karmada.io", "v1alpha2", "resourcebindings")
_GATED: Final[Object] = {
    "name": "gated-by-hyperjob",
    "expression": f"({_IS_GATED}) || (oldObject != null && {_WAS_GATED})",
}
_NOT_DELETED: Final[Object] = {"name": "not-being-deleted", "expression": _IS_NOT_BEING_DELETED}
_NOT_DELETED_OR_CHANGED: Final[Object] = {
    "name": "not-being-deleted-or-changed",
    "expression": f"{_IS_NOT_BEING_DELETED} || ({_CHANGES_SPEC})",
}


def _configuration(kind: str, name: str, webhooks: list[Object]) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": dict(_LABELS)},
        "webhooks": webhooks,
    }


def _webhook(name: str, client_config: Object) -> Object:
    return {
        "name": name,
        "clientConfig": client_config,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def _client_config(
    path: str, *, url: str | None, service: ServiceReference | None, ca_bundle: bytes
) -> Object:
    config: Object = {}
    if url is not None:
        config["url"] = url.rstrip("/") + path
    elif service is not None:
        config["service"] = {
            "namespace": service.namespace,
            "name": service.name,
            "path": path,
            "port": service.port,
        }
    if ca_bundle:
        config["caBundle"] = b64encode(ca_bundle).decode("ascii")
    return config
