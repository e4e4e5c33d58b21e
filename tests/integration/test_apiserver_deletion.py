"""Deletion in the embedded API server: finalizers, owners, namespaces, definitions, grace."""

import asyncio
from typing import Any

from tests.support.rawapi import GADGETS, Answer, RawApi, gadget

NAMESPACES = "/api/v1/namespaces"
PODS = "/api/v1/namespaces/default/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def owned_by(owner: Answer) -> list[dict[str, Any]]:
    meta = owner.body["metadata"]
    return [
        {
            "apiVersion": owner.body["apiVersion"],
            "kind": owner.body["kind"],
            "name": meta["name"],
            "uid": meta["uid"],
        }
    ]


async def gone(api: RawApi, path: str, name: str, *, since: str) -> None:
    """Wait until an object is deleted."""
    query = f"{path}?fieldSelector=metadata.name%3D{name}&resourceVersion={since}"
    async with api.watch(query) as events:
        while (await events.next())["type"] != "DELETED":
            pass


async def now(api: RawApi) -> str:
    return (await api.get(NAMESPACES)).version


async def test_dependents_go_after_their_owner(api: RawApi) -> None:
    owner = await api.post(GADGETS, gadget("owner"))
    child = await api.post(GADGETS, gadget("child", ownerReferences=owned_by(owner)))
    await api.post(GADGETS, gadget("grandchild", ownerReferences=owned_by(child)))
    since = await now(api)
    assert (await api.delete(f"{GADGETS}/owner")).body["status"] == "Success"
    await gone(api, GADGETS, "grandchild", since=since)
    assert (await api.get(GADGETS)).body["items"] == []


async def test_a_dependent_with_another_owner_stays_and_forgets_the_first(api: RawApi) -> None:
    first = await api.post(GADGETS, gadget("first"))
    second = await api.post(GADGETS, gadget("second"))
    both = owned_by(first) + owned_by(second)
    child = await api.post(GADGETS, gadget("child", ownerReferences=both))
    await api.delete(f"{GADGETS}/first")
    async with api.watch(f"{GADGETS}?resourceVersion={child.version}") as events:
        while (event := await events.next())["object"]["metadata"]["name"] != "child":
            pass
    assert event["type"] == "MODIFIED"
    assert event["object"]["metadata"]["ownerReferences"] == owned_by(second)


async def test_a_dependent_of_nobody_is_collected(api: RawApi) -> None:
    owner = await api.post(GADGETS, gadget("owner"))
    await api.delete(f"{GADGETS}/owner")
    since = await now(api)
    await api.post(GADGETS, gadget("late", ownerReferences=owned_by(owner)))
    await gone(api, GADGETS, "late", since=since)


async def test_a_terminating_namespace_takes_nothing_new_and_waits_for_finalizers(
    api: RawApi,
) -> None:
    await api.post(NAMESPACES, {"metadata": {"name": "team"}})
    inside = GADGETS.replace("default", "team")
    await api.post(inside, gadget("held", finalizers=["example.dev/hold"]))
    await api.delete(f"{NAMESPACES}/team")
    refused = await api.post(inside, gadget("new"))
    assert refused.code == 403
    assert "because it is being terminated" in refused.body["message"]
    assert refused.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace team is being terminated",
            "field": "metadata.namespace",
        }
    ]
    assert (await api.get(f"{NAMESPACES}/team")).body["status"]["phase"] == "Terminating"
    since = await now(api)
    await api.merge(f"{inside}/held", {"metadata": {"finalizers": None}})
    await gone(api, NAMESPACES, "team", since=since)


async def test_a_definition_takes_its_objects_along(api: RawApi) -> None:
    await api.post(GADGETS, gadget("a"))
    await api.post(GADGETS, gadget("held", finalizers=["example.dev/hold"]))
    since = await now(api)
    answer = await api.delete(f"{CRDS}/gadgets.test.example.dev")
    assert answer.body["metadata"]["deletionTimestamp"]
    refused = await api.post(GADGETS, gadget("new"))
    assert refused.code == 405
    await gone(api, GADGETS, "a", since=since)
    await api.merge(f"{GADGETS}/held", {"metadata": {"finalizers": None}})
    await gone(api, CRDS, "gadgets.test.example.dev", since=since)
    assert (await api.get(GADGETS)).code == 404


async def test_a_running_pod_is_given_its_grace(api: RawApi) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c"}]}}
    await api.post(PODS, pod)
    answer = await api.delete(f"{PODS}/p")
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5
    await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (await api.get(f"{PODS}/p")).code == 404


async def test_a_pod_without_node_goes_at_once(api: RawApi) -> None:
    await api.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
    await api.delete(f"{PODS}/p")
    assert (await api.get(f"{PODS}/p")).code == 404


async def test_concurrent_deletions_end_in_one_success(api: RawApi) -> None:
    await api.post(GADGETS, gadget("a"))
    answers = await asyncio.gather(*(api.delete(f"{GADGETS}/a") for _ in range(6)))
    assert sorted(answer.code for answer in answers) == [200, 404, 404, 404, 404, 404]
