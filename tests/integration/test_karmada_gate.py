"""Holding a gang behind Volcano Global: what breaks a gate, and what keeps it."""

import base64
from contextlib import asynccontextmanager

import orjson

from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import (
    MUTATING_WEBHOOKS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    WORKS,
)
from hyperjob_sandbox.karmada.webhooks import WebhookServer
from hyperjob_sandbox.topology import Topology
from tests.support.sandbox import (
    condition,
    config,
    following,
    job,
    phase,
    placed_on,
    policy,
    reported,
    work_key,
)

GATE = "example.com/gate"


def hold(request):
    """Put single fields of a gated binding back, as a gate holder does."""
    binding, operations = request["object"], []
    annotations = binding["metadata"].get("annotations") or {}
    suspension = binding["spec"].get("suspension")
    creating = request["operation"] == "CREATE"
    if not creating and annotations.get(GATE) != "held":
        return {"allowed": True}
    if suspension is None:
        operations.append({"op": "add", "path": "/spec/suspension", "value": {}})
    if (suspension or {}).get("dispatching") is not True:
        operations.append({"op": "add", "path": "/spec/suspension/dispatching", "value": True})
    if creating and annotations.get(GATE) != "held":
        if not annotations:
            operations.append({"op": "add", "path": "/metadata/annotations", "value": {}})
        path = "/metadata/annotations/" + GATE.replace("/", "~1")
        operations.append({"op": "add", "path": path, "value": "held"})
    if not operations:
        return {"allowed": True}
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


@asynccontextmanager
async def gate(kube):
    """Register a gate holder that is sent gated bindings only; yields what it was asked."""
    asked = []

    def decide(request):
        asked.append((request["operation"], request["object"]["spec"].get("suspension")))
        return hold(request)

    async with WebhookServer() as server:
        server.answers["/hold"] = decide
        configuration = {
            **MUTATING_WEBHOOKS.head,
            "metadata": {"name": "gate"},
            "webhooks": [
                {
                    "name": "gate.example.com",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": server.client_config("/hold"),
                    "matchConditions": [
                        {
                            "name": "gated",
                            "expression": "object.spec.?placement.?clusterAffinities"
                            ".orValue([]).exists(a, a.affinityName == 'gang')",
                        }
                    ],
                    "reinvocationPolicy": "IfNeeded",
                    "rules": [
                        {
                            "apiGroups": ["work.karmada.io"],
                            "apiVersions": ["v1alpha2"],
                            "resources": ["resourcebindings"],
                            "operations": ["CREATE", "UPDATE"],
                        }
                    ],
                    "sideEffects": "None",
                }
            ],
        }
        await kube.create(MUTATING_WEBHOOKS, configuration)
        try:
            yield asked
        finally:
            await kube.delete(MUTATING_WEBHOOKS, "gate")


async def submit(kube, name, cluster, *, affinity="gang"):
    gated = policy(name, cluster, affinity=affinity, suspension={"dispatching": True})
    await kube.create(PROPAGATION_POLICIES, gated)
    await kube.create(VCJOBS, job(name))


async def patch(kube, resource, name, body):
    await kube.patch(resource, name, body, kind=PatchType.MERGE, namespace="default")


async def test_a_held_gate_is_scheduled_repinned_and_dispatches_only_when_opened(tmp_path):
    async with (
        Topology(config(), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        gate(kube) as asked,
        following(kube, RESOURCE_BINDINGS, VCJOBS, WORKS) as (bindings, jobs, works),
        following(topology.clusters["member1"].kube, VCJOBS) as (first,),
        following(topology.clusters["member2"].kube, VCJOBS) as (second,),
    ):
        await submit(kube, "gang", "member1")
        created = await bindings.until("default/gang-job", bool)
        assert created["spec"]["suspension"] == {"dispatching": True, "scheduling": True}
        # First what the policy brought, then what Volcano Global made of it. A create that failed
        # half-way, since some webhook was slow to answer, is repeated and asks from the beginning.
        creations = [suspension for operation, suspension in asked if operation == "CREATE"]
        assert creations[-2:] == [{"dispatching": True}, {"scheduling": True}]
        placed = await bindings.until(
            "default/gang-job", lambda obj: condition(obj, "FullyApplied") is not None
        )
        assert ("UPDATE", {"scheduling": False}) in asked
        assert placed["spec"]["suspension"] == {"scheduling": False, "dispatching": True}
        assert placed_on(placed) == ["member1"]
        assert condition(placed, "Scheduled") == ("True", "Success")
        assert condition(placed, "FullyApplied") == ("False", "FullyAppliedFailed")
        assert reported(placed) == {"clusterName": "member1", "health": "Unknown"}
        work = await works.now(
            work_key("member1", "gang"), lambda obj: condition(obj, "Dispatching")
        )
        assert work["spec"]["suspendDispatching"] is True
        assert condition(work, "Dispatching") == ("False", "SuspendDispatching")

        # a change of the job makes the detector sync, which must not open the gate
        await patch(kube, VCJOBS, "gang", {"metadata": {"annotations": {"touched": "yes"}}})
        await bindings.until(
            "default/gang-job",
            lambda obj: (
                obj["spec"]["resource"]["resourceVersion"]
                != placed["spec"]["resource"]["resourceVersion"]
            ),
        )
        pinned = policy("gang", "member2", affinity="gang")["spec"]["placement"]
        await patch(kube, PROPAGATION_POLICIES, "gang", {"spec": {"placement": pinned}})
        await works.until(
            work_key("member2", "gang"), lambda obj: obj["spec"]["suspendDispatching"] is True
        )
        await works.gone(work_key("member1", "gang"))
        assert all(
            obj["spec"]["suspension"].get("dispatching")
            for obj in bindings.history["default/gang-job"]
        )
        assert "default/gang" not in second.history

        await patch(
            kube,
            RESOURCE_BINDINGS,
            "gang-job",
            {
                "metadata": {"annotations": {GATE: "open"}},
                "spec": {"suspension": {"dispatching": None}},
            },
        )
        await patch(kube, PROPAGATION_POLICIES, "gang", {"spec": {"suspension": None}})
        await jobs.until("default/gang", lambda obj: phase(obj) == "Completed")
        assert "default/gang" not in first.history
        opened = bindings.get("default/gang-job")
        assert opened["spec"]["suspension"] == {"scheduling": False}


async def synced(kube, bindings, name):
    """Make the detector sync once more, so that what came before it is settled."""
    key = f"default/{name}-job"
    await bindings.until(key, bool)
    await patch(kube, VCJOBS, name, {"metadata": {"annotations": {"touched": "yes"}}})
    template = await kube.get(VCJOBS, name, namespace="default")
    version = template["metadata"]["resourceVersion"]
    return await bindings.until(
        key, lambda obj: obj["spec"]["resource"]["resourceVersion"] == version
    )


async def test_volcano_globals_release_wipes_a_gate_that_only_the_policy_holds(tmp_path):
    never = config().volcano_global.model_copy(update={"dispatch_period": 3600.0})
    async with (
        Topology(config(volcano_global=never), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, RESOURCE_BINDINGS, VCJOBS) as (bindings, jobs),
    ):
        await submit(kube, "wiped", "member1", affinity="other")
        created = await bindings.until("default/wiped-job", bool)
        assert created["spec"]["suspension"] == {"scheduling": True}, "the policy's half is gone"
        settled = await synced(kube, bindings, "wiped")
        assert settled["spec"]["suspension"] == {"scheduling": True, "dispatching": True}
        release = [{"op": "add", "path": "/spec/suspension", "value": {"scheduling": False}}]
        await kube.patch(
            RESOURCE_BINDINGS, "wiped-job", release, kind=PatchType.JSON, namespace="default"
        )
        await jobs.until("default/wiped", lambda obj: phase(obj) == "Completed")
