import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from hyperjob_controller.apply.applier import Applier, claimed
from hyperjob_core.api.names import work_name
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import Resource
from hyperjob_core.virtualtime import run
from hyperjob_engine.model.planned import (
    Action,
    Adopt,
    AskAgain,
    CreateChild,
    DeleteChild,
    DeleteHyperJob,
    DeleteWork,
    Look,
    OpenGate,
    ReleaseQuota,
    ReleaseScheduling,
    Repin,
    Resize,
)
from tests.support.apiserver import refusal

Object = dict[str, Any]


class Server:
    """Records calls; `fails` may raise for one."""

    def __init__(self, fails: Callable[[str, str], KubeError | None] = lambda *_: None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails = fails
        self.there: set[str] = set()
        self.stays = False
        self.active = self.most = 0

    async def _call(self, verb: str, resource: Resource, name: str, *rest: Any) -> Object:
        self.active += 1
        self.most = max(self.most, self.active)
        await asyncio.sleep(0)
        self.active -= 1
        self.calls.append((verb, resource.plural, name, *rest))
        error = self.fails(verb, f"{resource.plural}/{name}")
        if error is not None:
            raise error
        return {"kind": resource.kind, "metadata": {"name": name, "namespace": "ns"}}

    async def create(self, resource: Resource, obj: Object) -> Object:
        return await self._call("create", resource, obj["metadata"]["name"])

    async def get(self, resource: Resource, name: str, *, namespace: str) -> Object:
        found = await self._call("get", resource, name)
        if f"{resource.plural}/{name}" not in self.there:
            raise refusal(404, "NotFound")
        return found

    async def patch(
        self, resource: Resource, name: str, body: Any, *, kind: PatchType, **_: Any
    ) -> Object:
        return await self._call("patch", resource, name, kind.name, body)

    async def delete(self, resource: Resource, name: str, *, uid: str, **_: Any) -> Object:
        found = await self._call("delete", resource, name, uid)
        return found if self.stays else {"kind": "Status"}


class Slow(Server):
    """Answers after a tenth of a second."""

    async def _call(self, verb: str, resource: Resource, name: str, *rest: Any) -> Object:
        await asyncio.sleep(0.1)
        return await super()._call(verb, resource, name, *rest)


class Notes:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.gone: list[tuple[str, str]] = []
        self.unsure = True

    def may_exist(self, _key: str) -> bool:
        return self.unsure

    def note(self, resource: Resource, obj: Object) -> None:
        self.seen.append((resource.plural, obj["metadata"]["name"]))

    def note_deleted(self, resource: Resource, key: str, uid: str) -> None:
        self.gone.append((key, uid))


def create(name: str, *, job: bool = True, policy: bool = True) -> CreateChild:
    document = {"metadata": {"name": name, "namespace": "ns"}}
    return CreateChild(
        name=name,
        policy=document if policy else None,
        job=document if job else None,
        cluster="a",
        demand={},
    )


PERMANENT_ID = "propagationpolicy.karmada.io/permanent-id"


@pytest.mark.parametrize(
    ("given", "labels", "annotations"),
    [
        (
            {PERMANENT_ID: "p-1"},
            {"mine": "x", PERMANENT_ID: "p-1"},
            {
                "own": "y",
                "propagationpolicy.karmada.io/namespace": "ns",
                "propagationpolicy.karmada.io/name": "x",
            },
        ),
        ({}, {"mine": "x"}, {"own": "y"}),
    ],
    ids=["by Karmada's webhook", "without it"],
)
def test_a_vcjob_is_created_with_the_claim_of_its_policy(given, labels, annotations) -> None:
    job = {"metadata": {"name": "x", "labels": {"mine": "x"}, "annotations": {"own": "y"}}}
    policy = {"metadata": {"name": "x", "namespace": "ns", "labels": given}}
    metadata = claimed(job, policy)["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == (labels, annotations)
    assert job["metadata"]["labels"] == {"mine": "x"}, "the plan's object stays as it is"


async def test_the_claim_is_of_the_policy_that_the_api_server_stored() -> None:
    class Stored(Server):
        bodies: ClassVar[list[Object]] = []

        async def create(self, resource: Resource, obj: Object) -> Object:
            self.bodies.append(obj)
            answer = await super().create(resource, obj)
            answer["metadata"]["labels"] = {PERMANENT_ID: "p-7"}
            return answer

    await carry_out(Stored(), create("x"))
    _, job = Stored.bodies
    assert job["metadata"]["labels"] == {PERMANENT_ID: "p-7"}


async def carry_out(server: Server, *actions: Action, in_flight: int = 50) -> tuple[Any, Notes]:
    notes = Notes()
    applier = Applier(server, notes, in_flight=in_flight)  # type: ignore[arg-type]
    return await applier.apply("ns", actions), notes


@pytest.mark.parametrize("unsure", [True, False])
async def test_a_policy_is_created_before_its_vcjob(unsure: bool) -> None:
    server, notes = Server(), Notes()
    notes.unsure = unsure
    result = await Applier(server, notes).apply("ns", [create("x")])  # type: ignore[arg-type]
    look = [("get", "jobs", "x")] if unsure else []
    assert [call[:3] for call in server.calls] == [
        *look,
        ("create", "propagationpolicies", "x"),
        ("create", "jobs", "x"),
    ]
    assert notes.seen == [("propagationpolicies", "x"), ("jobs", "x")]
    assert (len(result.done), result.failures, result.stale) == (1, [], False)


async def test_sub_jobs_are_made_in_parallel_within_bounds() -> None:
    server = Server()
    await carry_out(server, *(create(f"x{i}") for i in range(20)), in_flight=5)
    assert server.most == 5
    assert len(server.calls) == 60


def test_a_hyperjob_of_400_sub_jobs_delays_that_of_another_namespace_by_one_action() -> None:
    async def scene() -> tuple[float, float]:
        applier = Applier(Slow(), Notes())  # type: ignore[arg-type]
        many = [create(f"big-{number}") for number in range(400)]
        big = asyncio.create_task(applier.apply("big", many))
        await asyncio.sleep(0.05)
        clock = asyncio.get_running_loop().time
        began = clock()
        await applier.apply("small", [create("small-0"), create("small-1")])
        waited = clock() - began
        await big
        return waited, clock()

    waited, whole = run(scene())
    assert waited <= 0.6, "0.3 s until a slot is free, and 0.3 s for three requests"
    assert whole <= 2.8, "no slot is idle: 402 actions of 0.3 s at 50 slots"


async def test_one_refusal_stops_nobody_else() -> None:
    server = Server(
        lambda verb, what: refusal(422, "Invalid") if what == "propagationpolicies/x" else None
    )
    result, _ = await carry_out(server, create("x"), create("y"))
    assert [action.name for action in result.done] == ["y"]
    assert [(failure.name, failure.is_refusal) for failure in result.failures] == [("x", True)]
    assert ("create", "jobs", "x") not in [call[:3] for call in server.calls]


@pytest.mark.parametrize(
    ("code", "reason", "message", "refused"),
    [
        (403, "Forbidden", "admission webhook denied the request", True),
        (403, "Forbidden", "failed quota: q: must specify limits.cpu", True),
        (403, "Forbidden", "exceeded quota: q, requested: count/jobs=1", False),
        (403, "Forbidden", "status unknown for quota: q, resources: count/jobs", False),
        (404, "NotFound", "", True),
        (500, "InternalError", "failed calling webhook", False),
        (429, "TooManyRequests", "", False),
        (503, "ServiceUnavailable", "", False),
    ],
)
async def test_a_no_is_told_from_a_later(
    code: int, reason: str, message: str, refused: bool
) -> None:
    result, _ = await carry_out(Server(lambda *_: refusal(code, reason, message)), create("x"))
    assert [failure.is_refusal for failure in result.failures] == [refused]
    assert [failure.is_outage for failure in result.failures] == [not refused]


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_name_that_is_looked_up_is_made_only_where_nothing_is_found(is_there: bool) -> None:
    server = Server()
    server.there |= {"jobs/x"} if is_there else set()
    result, notes = await carry_out(server, Look(name="x"), create("x", policy=False))
    assert [call[0] for call in server.calls] == ["get"] + ["create"] * (0 if is_there else 1)
    assert (result.stale, result.failures) == (is_there, [])
    assert ("jobs", "x") in notes.seen


async def test_no_policy_is_made_for_a_vcjob_that_is_there_already() -> None:
    """It would take a vcjob of another owner to a cluster, and no cache has that vcjob."""
    server = Server()
    server.there.add("jobs/x")
    result, notes = await carry_out(server, create("x"))
    assert [call[:3] for call in server.calls] == [("get", "jobs", "x")]
    assert (result.stale, result.failures) == (True, [])
    assert notes.seen == [("jobs", "x")]


async def test_what_exists_is_looked_at_and_left_to_the_next_plan() -> None:
    server = Server(lambda verb, what: refusal(409, "AlreadyExists") if verb == "create" else None)
    server.there.add("propagationpolicies/x")
    result, notes = await carry_out(server, create("x"))
    assert [call[:2] for call in server.calls] == [
        ("get", "jobs"),
        ("create", "propagationpolicies"),
        ("get", "propagationpolicies"),
    ]
    assert notes.seen == [("propagationpolicies", "x")]
    assert (result.done, result.failures, result.stale) == ([], [], True)


async def test_a_move_comes_before_the_creation_it_is_for() -> None:
    server = Server()
    move = Repin(name="x", uid="u", cluster="b", demand={}, placement={"p": 1})
    await carry_out(server, move, create("x", policy=False))
    assert server.calls == [
        ("patch", "propagationpolicies", "x", "MERGE",
         {"metadata": {"uid": "u"}, "spec": {"placement": {"p": 1}}}),
        ("create", "jobs", "x"),
    ]  # fmt: skip


async def test_the_gate_lifts_the_policys_suspension_first() -> None:
    server = Server()

    def gate_of(name: str, binding: str | None, policy: str | None) -> OpenGate:
        uids = {"binding_uid": binding, "policy_uid": policy}
        return OpenGate(name=name, binding=f"{name}-job", release_scheduling=name == "y", **uids)

    gates = [gate_of("x", "rb-x", "pp-x"), gate_of("y", "rb-y", None), gate_of("z", None, "pp-z")]
    await carry_out(server, *gates)
    gate = {"annotations": {"training.volcano.sh/gate": "open"}}
    by_name: dict[str, list[Any]] = {"x": [], "y": [], "z": []}
    for call in server.calls:
        by_name[call[2][0]].append(call)
    assert by_name["x"] == [
        ("patch", "propagationpolicies", "x", "MERGE",
         {"metadata": {"uid": "pp-x", **gate}, "spec": {"suspension": {"dispatching": None}}}),
        ("patch", "resourcebindings", "x-job", "MERGE",
         {"metadata": {"uid": "rb-x", **gate}, "spec": {"suspension": {"dispatching": None}}}),
    ]  # fmt: skip
    assert by_name["y"][0][4]["spec"] == {"suspension": {"dispatching": None, "scheduling": None}}
    assert [call[1] for call in by_name["z"]] == ["propagationpolicies"], "Karmada does the rest"


PATCHES: dict[str, tuple[Action, str, str, Object]] = {
    "a binding that has ended asks for nothing": (
        ReleaseQuota(name="x", binding="x-job", binding_uid="rb"),
        "resourcebindings",
        "x-job",
        {"metadata": {"uid": "rb"}, "spec": {"replicaRequirements": {"resourceRequest": None}}},
    ),
    "a forgotten binding may be scheduled": (
        ReleaseScheduling(name="x", binding="x-job", binding_uid="rb"),
        "resourcebindings",
        "x-job",
        {"metadata": {"uid": "rb"}, "spec": {"suspension": {"scheduling": False}}},
    ),
    "Karmada is asked to apply a vcjob again": (
        AskAgain(name="x", uid="u", mark="2"),
        "jobs",
        "x",
        {"metadata": {"uid": "u", "annotations": {"training.volcano.sh/asked-again": "2"}}},
    ),
    "a policy that is ours is taken over": (
        Adopt(kind="PropagationPolicy", name="x", uid="u", patch={"metadata": {"uid": "u"}}),
        "propagationpolicies",
        "x",
        {"metadata": {"uid": "u"}},
    ),
}


@pytest.mark.parametrize(("action", "plural", "name", "body"), PATCHES.values(), ids=PATCHES.keys())
async def test_what_is_changed_is_changed_in_the_object_of_that_uid(
    action: Action, plural: str, name: str, body: Object
) -> None:
    server = Server()
    result, notes = await carry_out(server, action)
    assert server.calls == [("patch", plural, name, "MERGE", body)]
    assert notes.seen == [(plural, name)]
    assert result.done == [action]


@pytest.mark.parametrize(
    ("more", "there", "deletes"),
    [
        ({}, ["works"], True),
        ({}, [], False),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, ["works"], False),
        ({"annotations": {}}, ["works"], False),
        ({"of": {}}, ["works"], False),
        ({}, ["works", "resourcebindings"], False),
    ],
    ids=["forgotten", "gone", "is going", "of something else", "no sub-job", "Karmada knows it"],
)
async def test_a_work_is_deleted_by_its_uid_where_karmada_has_forgotten_it(
    more: Object, there: list[str], deletes: bool
) -> None:
    bound = {
        "resourcebinding.karmada.io/namespace": "ns",
        "resourcebinding.karmada.io/name": "x-job",
    }

    class Karmada(Server):
        async def get(self, resource: Resource, name: str, *, namespace: str) -> Object:
            self.there = {f"{each}/{name}" for each in there}
            found = await super().get(resource, name, namespace=namespace)
            labels = more.get("of", {"volcano.sh/hyperjob-name": "hj"})
            manifests = [{"metadata": {"labels": labels}}]
            metadata = {**found["metadata"], "uid": "w", "annotations": bound, **more}
            return {"metadata": metadata, "spec": {"workload": {"manifests": manifests}}}

    server, action = Karmada(), DeleteWork(name="x", clusters=("east",))
    result, _ = await carry_out(server, action)
    name = work_name("x", "ns")
    assert [call for call in server.calls if call[0] == "delete"] == (
        [("delete", "works", name, "w")] if deletes else []
    )
    assert result.done == ([action] if deletes else [])


async def test_a_hyperjob_whose_time_is_over_is_deleted_by_its_uid() -> None:
    server = Server()
    _, notes = await carry_out(server, DeleteHyperJob(name="hj", uid="u"))
    assert server.calls == [("delete", "hyperjobs", "hj", "u")]
    assert notes.gone == [("ns/hj", "u")]


async def test_what_a_finalizer_keeps_is_noted_as_it_is_answered() -> None:
    server = Server()
    server.stays = True
    _, notes = await carry_out(server, DeleteChild(name="x", job_uid="j", policy_uid=None))
    assert notes.seen == [("jobs", "x")]
    assert notes.gone == []


async def test_deletions_come_last_by_uid_and_the_vcjob_first() -> None:
    server = Server()
    gone = DeleteChild(name="x", job_uid="j", policy_uid="p")
    _, notes = await carry_out(server, gone, create("y"))
    assert [call[:4] for call in server.calls[-2:]] == [
        ("delete", "jobs", "x", "j"),
        ("delete", "propagationpolicies", "x", "p"),
    ]
    assert notes.gone == [("ns/x", "j"), ("ns/x", "p")]


async def test_a_serviceexport_is_deleted_before_the_policy_that_makes_a_later_pass_try_again() -> (
    None
):
    metadata = {"name": "x", "namespace": "ns", "ownerReferences": []}
    export = {"metadata": metadata}
    gone = DeleteChild(name="x", job_uid="j", policy_uid="p", export=export)

    def fails(_verb: str, what: str) -> KubeError | None:
        return refusal(500, "InternalError") if what.startswith("serviceexports") else None

    server = Server(fails)
    result, _ = await carry_out(server, gone)
    assert [call[:2] for call in server.calls] == [("delete", "jobs"), ("get", "serviceexports")]
    assert len(result.failures) == 1


async def test_what_is_gone_already_is_as_good_as_deleted() -> None:
    server = Server(lambda verb, _: refusal(404, "NotFound") if verb == "delete" else None)
    result, _ = await carry_out(server, DeleteChild(name="x", job_uid="j", policy_uid=None))
    assert (len(result.done), result.failures, result.stale) == (1, [], False)


@pytest.mark.parametrize("code", [404, 409])
async def test_an_object_that_changed_meanwhile_is_looked_at_again(code: int) -> None:
    server = Server(lambda verb, _: refusal(code, "") if verb == "patch" else None)
    adopt = Adopt(kind="Job", name="x", uid="u", patch={"metadata": {}})
    change = Resize(name="y", uid="u", operations=({"op": "test"},))
    result, _ = await carry_out(server, adopt, change)
    assert (result.done, result.failures, result.stale) == ([], [], True)
    assert {call[3] for call in server.calls} == {"MERGE", "JSON"}
