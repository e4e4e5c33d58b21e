"""Admission of TrainJobs: refused by field, with the rules of the HyperJob that they become."""

from typing import Any

import orjson
import pytest

from hyperjob_core.api.trainer import RUNS_AS
from hyperjob_rules.configuration import VALIDATE_TRAINJOB, configurations
from hyperjob_rules.validation.context import NOTHING_KNOWN
from hyperjob_trainjobs.decide import judge
from hyperjob_webhook.admission import admit
from tests.support.trainjobs import runtime, trainjob

Object = dict[str, Any]
TORCH = runtime()
MPI = runtime(policy={"flux": {}})


def refusals(
    tj: Object,
    old: Object | None = None,
    of: Object | None = TORCH,
    namespace: Object | None = None,
) -> list[str]:
    return [str(error) for error in judge(tj, old, of, namespace, NOTHING_KNOWN).errors]


def test_a_trainjob_that_can_run_is_allowed() -> None:
    assert refusals(trainjob()) == []


def test_a_trainjob_of_trainer_itself_is_never_judged() -> None:
    assert refusals(trainjob(labels={}), of=MPI) == []
    assert refusals(trainjob(managedBy="kueue.x-k8s.io/multikueue"), of=MPI) == []


@pytest.mark.parametrize(
    ("tj", "of", "expected"),
    [
        (
            trainjob(),
            MPI,
            "spec.runtimeRef: Forbidden: ClusterTrainingRuntime torch has spec.mlPolicy.flux: ",
        ),
        (
            trainjob(),
            None,
            'spec.runtimeRef: Not found: "torch"',
        ),
        (
            trainjob(trainer={"image": " "}),
            TORCH,
            'spec: Invalid value: "tj": its HyperJob is refused: spec.replicatedJobs[0].templ',
        ),
        (
            trainjob("x" * 63),
            TORCH,
            f'spec: Invalid value: "{"x" * 63}": its HyperJob is refused: spec.replicated',
        ),
    ],
)
def test_a_new_trainjob_is_refused_by_field(tj: Object, of: Object | None, expected: str) -> None:
    found = refusals(tj, of=of)
    assert any(each.startswith(expected) for each in found), found


def test_only_what_the_hyperjob_can_follow_may_change() -> None:
    patches = [{"manager": "a.b/c", "time": "2026-01-01T00:00:00Z"}]
    old = trainjob(runtimePatches=patches)
    later = trainjob(suspend=True, runtimePatches=[{"manager": "a.b/c"}])
    assert refusals(later, old) == []
    (error,) = refusals(trainjob(), old)
    assert error.startswith("spec.runtimePatches: Forbidden")
    (error,) = refusals(trainjob(spread='{"clusters": 2}', runtimePatches=patches), old)
    assert error.startswith("metadata.annotations[training.volcano.sh/spread]: Forbidden")


def test_a_trainjob_that_is_being_deleted_may_change() -> None:
    old, new = trainjob(runtimePatches=[{"manager": "a.b/c"}]), trainjob()
    new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert refusals(new, old) == []


def test_the_label_of_the_namespace_counts() -> None:
    namespace = {"metadata": {"labels": {RUNS_AS: "HyperJob"}}}
    assert refusals(trainjob(labels={}), of=MPI, namespace=namespace) != []


def test_without_the_runtime_the_path_allows_each_trainjob() -> None:
    request = {
        "uid": "u",
        "kind": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"},
        "resource": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "resource": "t"},
        "operation": "CREATE",
        "namespace": "team",
        "name": "tj",
        "object": trainjob(),
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    reply = admit(VALIDATE_TRAINJOB, orjson.dumps(review))
    assert (reply.status, orjson.loads(reply.body)["response"]["allowed"]) == (200, True)


def test_the_configuration_has_the_webhook_only_where_asked_and_outages_let_trainjobs_pass() -> (
    None
):
    _, without = configurations(url="https://a")
    _, found = configurations(url="https://a", trainjobs=True)
    assert [each["name"] for each in without["webhooks"]] == ["vhyperjob.training.volcano.sh"]
    assert found["webhooks"][:1] == without["webhooks"]
    (webhook,) = found["webhooks"][1:]
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["rules"][0]["resources"] == ["trainjobs"]
    assert webhook["clientConfig"]["url"] == f"https://a{VALIDATE_TRAINJOB}"
