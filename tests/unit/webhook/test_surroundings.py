"""What the webhook knows of other objects: informers that hold given ones."""

import asyncio
from typing import Any

import pytest

from hyperjob_core.api.field import make_status
from hyperjob_core.api.names import LABEL_CLAIMED_WIDELY
from hyperjob_core.api.trainer import RUNS_AS
from hyperjob_core.kube.errors import from_status
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import CLUSTERS, NAMESPACES, PRIORITY_CLASSES, QUEUES, Resource
from hyperjob_core.tasks import cancel
from hyperjob_core.telemetry.endpoints import Remark
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context, Queue
from hyperjob_webhook.review import AdmissionRequest
from hyperjob_webhook.surroundings import MOST_BYTES, Surroundings
from tests.support.apiserver import ApiServer, refusal
from tests.support.trainjobs import runtime, trainjob
from tests.support.virtually import virtually


def around(kube: Any, known: Context = NOTHING_KNOWN) -> tuple[Surroundings, list[Informer]]:
    informers = [Informer(kube, each) for each in (CLUSTERS, QUEUES, PRIORITY_CLASSES)]
    return Surroundings(kube, *informers, known), informers


def test_empty_lists_are_known_once_they_were_read() -> None:
    found, informers = around(ApiServer().kube)
    assert found.context() == NOTHING_KNOWN
    for each in informers:
        each.synced.set()
    assert found.context() == Context(clusters={}, queues={}, priority_classes=frozenset())
    users = Context(controllers=frozenset({"a"}))
    assert around(ApiServer().kube, users)[0].context() == users


async def test_a_cluster_is_ready_only_where_its_condition_says_so() -> None:
    server = ApiServer()
    for name, status in (
        ("none", {}),
        ("empty", {"conditions": None}),
        ("other", {"conditions": [{"type": "CompleteAPIEnablements", "status": "True"}]}),
        ("unready", {"conditions": [{"type": "Ready", "status": "False"}]}),
        ("ready", {"conditions": [{"type": "Ready", "status": "True"}]}),
    ):
        server.put(CLUSTERS, {"metadata": {"name": name}, "status": status})
    server.put(CLUSTERS, {"metadata": {"name": "new"}})
    found, informers = around(server.kube)
    await run_until_whole(informers)
    known = found.context().clusters
    assert known is not None
    assert [name for name, each in known.items() if each.ready] == ["ready"]
    assert len(known) == 6


async def test_a_refused_token_is_a_remark_and_reviews_go_on() -> None:
    server = ApiServer()
    server.fails = lambda *_: refusal(401, "Unauthorized")
    found, informers = around(server.kube)
    assert found.refused() is None
    task = asyncio.create_task(informers[0].run())
    while informers[0].last_error is None:  # noqa: ASYNC110 - what is awaited is memory
        await asyncio.sleep(0)
    await cancel([task])
    remark = found.refused()
    assert isinstance(remark, Remark), "the webhook stays ready"
    assert "no warnings about other objects, because the API server answers 401" in remark


async def run_until_whole(informers: list[Informer]) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each.run()) for each in informers]
        for each in informers:
            await each.synced.wait()
        for task in tasks:
            task.cancel()


async def test_a_queue_has_its_state_and_the_queues_below_it() -> None:
    server = ApiServer()
    for name, spec, status in (
        ("root", {"weight": 1}, {"state": "Open"}),
        ("team", {"parent": "root"}, {"state": "Closed"}),
        ("other", {"parent": "root"}, None),
        ("alone", None, {}),
    ):
        server.put(QUEUES, {"metadata": {"name": name}, "spec": spec, "status": status})
    server.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}})
    for name in ("copied", "system-node-critical"):
        claimed = {LABEL_CLAIMED_WIDELY: "1"} if name == "copied" else {}
        server.put(PRIORITY_CLASSES, {"metadata": {"name": name, "labels": claimed}})
    found, informers = around(server.kube)
    await run_until_whole(informers)
    assert found.context() == Context(
        clusters={},
        queues={
            "root": Queue(state="Open", children=2),
            "team": Queue(state="Closed"),
            "other": Queue(state=""),
            "alone": Queue(state=""),
        },
        priority_classes=frozenset({"high", "copied", "system-node-critical"}),
        kept_classes=frozenset({"high"}),
    )


async def test_a_context_is_made_anew_after_a_change_alone() -> None:
    server = ApiServer()
    found, informers = around(server.kube)
    await run_until_whole(informers)
    before = found.context()
    assert found.context() is before
    changed = asyncio.Event()
    informers[0].add_handler(lambda *_: changed.set())
    server.put(CLUSTERS, {"metadata": {"name": "new"}})
    following = asyncio.create_task(informers[0].run())
    await asyncio.wait_for(changed.wait(), 30)
    await cancel([following])
    assert found.context() is not before
    assert found.context() is found.context()


@pytest.mark.parametrize("late", [0, 1, 2], ids=["clusters", "queues", "classes"])
def test_a_list_that_was_not_read_yet_is_unknown_and_looked_at_again(late: int) -> None:
    found, informers = around(ApiServer().kube)
    for each in informers:
        each.synced.set()
    informers[late].synced.clear()
    known = found.context()
    lists = [known.clusters, known.queues, known.priority_classes]
    assert [each is None for each in lists] == [number == late for number in range(3)]
    informers[late].synced.set()
    again = found.context()
    assert None not in (again.clusters, again.queues, again.priority_classes)


class Names:
    """Holds the metadata of objects; `answer` is awaited before each answer."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths
        self.asked: list[str] = []
        self.namespace: Any = {"metadata": {"name": "team"}}
        self.answer: Any = asyncio.Event()
        self.answer.set()

    async def raw(self, method: str, path: str, *, accept: str) -> None:
        assert (method, accept.partition(";")[0]) == ("GET", "application/json")
        self.asked.append(path.removeprefix("/api/v1/namespaces/team/"))
        await self.answer.wait()
        if path not in self.paths:
            raise from_status(make_status(404, "no"), path)

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Any:
        assert (resource, name, namespace) == (NAMESPACES, "team", None)
        return self.namespace


def request(size: int = 100) -> AdmissionRequest:
    return AdmissionRequest(
        "1", "training.volcano.sh", "v1alpha1", "HyperJob", "", "CREATE", "team", "hj", "me",
        dry_run=False, size=size, object=None, old_object=None,
    )  # fmt: skip


def needing(*config_maps: str) -> dict[str, Any]:
    sources = [{"configMapRef": {"name": name}} for name in config_maps]
    pod = {"spec": {"containers": [{"name": "main", "image": "i", "envFrom": sources}]}}
    template = {"tasks": [{"name": "worker", "replicas": 1, "template": pod}]}
    return {
        "metadata": {"name": "hj"},
        "spec": {"replicatedJobs": [{"name": "a", "templateSpec": template}]},
    }


def missing_in(warnings: Any) -> list[str]:
    return [each.partition(" in the ")[0].rpartition("there is no ")[2] for each in warnings]


async def test_what_a_new_hyperjob_needs_is_asked_for_by_name() -> None:
    kube = Names("/api/v1/namespaces/team/configmaps/there")
    found, _ = around(kube)
    warnings = await found.missing(request(), needing("there", "gone"))
    assert missing_in(warnings) == ['ConfigMap "gone"']
    assert kube.asked == ["configmaps/gone", "configmaps/there"]
    assert await found.missing(request(), needing()) == ()
    assert len(kube.asked) == 2


async def test_a_namespace_that_karmada_does_not_copy_is_warned_of() -> None:
    kube = Names()
    kube.namespace["metadata"]["labels"] = {"namespace.karmada.io/skip-auto-propagation": "true"}
    found, _ = around(kube)
    (warning,) = await found.missing(request(), needing())
    assert "Karmada copies nothing" in warning


@pytest.mark.parametrize(("size", "asks"), [(MOST_BYTES, True), (MOST_BYTES + 1, False)])
async def test_objects_of_a_large_hyperjob_are_not_asked_for(size: int, asks: bool) -> None:
    kube = Names()
    found, _ = around(kube)
    warnings = await found.missing(request(size), needing("gone"))
    assert bool(kube.asked) is bool(warnings) is asks
    assert warnings or warnings == ()


async def test_twenty_objects_are_asked_for_and_kinds_beyond_them_are_unknown() -> None:
    for count, told in ((20, 20), (21, 0)):
        kube = Names()
        found, _ = around(kube)
        warnings = await found.missing(request(), needing(*(f"c{n:02}" for n in range(count))))
        assert (len(kube.asked), len(warnings)) == (20, told)


async def test_eight_hyperjobs_at_a_time_are_looked_at() -> None:
    kube = Names()
    kube.answer.clear()
    found, _ = around(kube)
    looks = [asyncio.create_task(found.missing(request(), needing("gone"))) for _ in range(8)]
    for _ in range(8):
        await asyncio.sleep(0)
    assert len(kube.asked) == 8
    assert await found.missing(request(), needing("gone")) == ()
    kube.answer.set()
    assert [missing_in(await each) for each in looks] == [['ConfigMap "gone"']] * 8
    assert missing_in(await found.missing(request(), needing("gone"))) == ['ConfigMap "gone"']


@virtually
async def test_an_answer_that_does_not_come_within_a_second_gives_no_warning() -> None:
    kube = Names()
    kube.answer = asyncio.Event()
    found, _ = around(kube)
    loop = asyncio.get_running_loop()
    for _ in range(9):
        began = loop.time()
        assert await found.missing(request(), needing("gone")) == ()
        assert loop.time() - began == pytest.approx(1.0)
    assert len(kube.asked) == 9


class Stored:
    """Holds objects by kind, namespace and name; an exception among them is raised."""

    def __init__(self, **objects: Any) -> None:
        self.objects = {tuple(key.split("__")): found for key, found in objects.items()}
        self.asked: list[tuple[str, str, str]] = []
        self.answer = asyncio.Event()
        self.answer.set()

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Any:
        key = (resource.kind, namespace or "", name)
        self.asked.append(key)
        await self.answer.wait()
        found = self.objects.get(key)
        if found is None:
            raise from_status(make_status(404, "no"), name)
        if isinstance(found, Exception):
            raise found
        return found


def asking(tj: dict[str, Any], old: dict[str, Any] | None = None) -> AdmissionRequest:
    return AdmissionRequest(
        "1", "trainer.kubeflow.org", "v1alpha1", "TrainJob", "", "CREATE", "team", "tj", "me",
        dry_run=False, size=100, object=tj, old_object=old,
    )  # fmt: skip


SCOPED = {"name": "torch", "kind": "TrainingRuntime"}
LABELLED = {"metadata": {"name": "team", "labels": {RUNS_AS: "HyperJob"}}}
LATE = from_status(make_status(403, "no"), "")
WIDE = {"ClusterTrainingRuntime____torch": runtime()}
NO_NODES = {"trainer": {"numNodes": 0}}
# a TrainJob, the objects that are stored -> the fields that are refused
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "the runtime of the cluster": (trainjob(), WIDE, []),
    "a runtime of another name": (trainjob(), {}, ["spec.runtimeRef"]),
    "a runtime of the namespace": (
        trainjob(runtimeRef=SCOPED),
        {"TrainingRuntime__team__torch": runtime()},
        [],
    ),
    "a runtime of the cluster in place of the namespace": (
        trainjob(runtimeRef=SCOPED),
        WIDE,
        ["spec.runtimeRef"],
    ),
    "the label of the namespace": (
        trainjob(labels={}, **NO_NODES),
        WIDE | {"Namespace____team": LABELLED},
        ["spec.trainer.numNodes"],
    ),
    "no label": (trainjob(labels={}, **NO_NODES), WIDE, []),
    "a runtime that it may not read": (
        trainjob(**NO_NODES),
        {"ClusterTrainingRuntime____torch": LATE},
        [],
    ),
    "no runtime": (trainjob(runtimeRef={}), {}, []),
}


@pytest.mark.parametrize(("tj", "stored", "fields"), CASES.values(), ids=list(CASES))
async def test_a_trainjob_is_judged_with_its_runtime_and_its_namespace(
    tj: dict[str, Any], stored: dict[str, Any], fields: list[str]
) -> None:
    found, _ = around(Stored(**stored))
    decision = await found.judge(asking(tj))
    assert [error.field for error in decision.errors] == fields
    assert decision.allowed is not bool(fields)


async def test_a_changed_trainjob_is_compared_with_the_old_one() -> None:
    found, _ = around(Stored(**WIDE))
    spread = trainjob(spread='{"clusters": 1}')
    assert not (await found.judge(asking(spread, trainjob()))).allowed
    assert (await found.judge(asking(spread))).allowed


async def test_eight_trainjobs_at_a_time_are_judged_and_the_others_allowed() -> None:
    kube = Stored()
    kube.answer.clear()
    found, _ = around(kube)
    looks = [asyncio.create_task(found.judge(asking(trainjob()))) for _ in range(8)]
    for _ in range(8):
        await asyncio.sleep(0)
    assert len(kube.asked) == 8
    assert (await found.judge(asking(trainjob()))).allowed
    assert len(kube.asked) == 8
    kube.answer.set()
    assert [(await each).allowed for each in looks] == [False] * 8
    assert not (await found.judge(asking(trainjob()))).allowed


@virtually
async def test_a_runtime_that_is_not_read_within_a_second_lets_the_trainjob_pass() -> None:
    kube = Stored()
    kube.answer.clear()
    found, _ = around(kube)
    assert (await found.judge(asking(trainjob()))).allowed
