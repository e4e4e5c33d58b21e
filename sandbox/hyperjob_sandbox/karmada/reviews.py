"""What the webhooks of Karmada, Volcano Global and Volcano answer to an AdmissionReview.

Pure: one request in, one response out. Volcano Global's answer replaces a whole object on purpose,
as the real one does. Our own webhook has no part in this module and must never have.
"""

import base64
from collections.abc import Callable
from typing import Final
from uuid import uuid4

import jsonpatch
import orjson

from hyperjob.api.meta import Object
from hyperjob.kube.informer import Informer
from hyperjob_sandbox.karmada.policies import default_policy
from hyperjob_sandbox.member.jobadmission import default_job, validate_create, validate_update

ReviewHandler = Callable[[Object], Object]
_WORKLOADS: Final = frozenset({("batch.volcano.sh/v1alpha1", "Job"), ("apps/v1", "Deployment")})


def answer(review: Object, decide: ReviewHandler) -> Object:
    """Return the AdmissionReview that answers another one."""
    request: Object = review["request"]
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **decide(request)},
    }


def mutate_policy(request: Object) -> Object:
    """Default a policy as Karmada's webhook does."""
    policy: Object = request["object"]
    return _patched(policy, default_policy(policy, permanent_id=str(uuid4())))


def mutate_binding(request: Object) -> Object:
    """Suspend the scheduling of a new workload's binding, replacing all of its suspension."""
    spec: Object = request["object"]["spec"]
    resource: Object = spec["resource"]
    if (spec.get("suspension") or {}).get("scheduling") or (
        (resource["apiVersion"], resource["kind"]) not in _WORKLOADS
    ):
        return {"allowed": True}
    return _patch([{"op": "add", "path": "/spec/suspension", "value": {"scheduling": True}}])


def mutate_job(request: Object) -> Object:
    """Default a new vcjob as Volcano does."""
    return _patched(request["object"], default_job(request["object"]))


def validate_job(queues: Informer) -> ReviewHandler:
    """Return the validation of vcjobs against a cluster's queues."""

    def decide(request: Object) -> Object:
        job: Object = request["object"]
        if request["operation"] == "UPDATE":
            reason = validate_update(job, request["oldObject"])
        else:
            name = str((job.get("spec") or {}).get("queue") or "default")
            parents = [(queue.get("spec") or {}).get("parent") for queue in queues.items()]
            reason = validate_create(job, queue=queues.get(name), child_queues=parents.count(name))
        return {"allowed": False, "status": {"message": reason}} if reason else {"allowed": True}

    return decide


def _patched(old: Object, new: Object) -> Object:
    operations: list[Object] = jsonpatch.make_patch(old, new).patch
    return _patch(operations) if operations else {"allowed": True}


def _patch(operations: list[Object]) -> Object:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(orjson.dumps(operations)).decode(),
    }
