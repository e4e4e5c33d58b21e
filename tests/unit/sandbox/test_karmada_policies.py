"""Which policy wins a template, and which may take it from another."""

import pytest

from hyperjob_core.api.names import binding_name, work_name
from hyperjob_sandbox.karmada import names, policies


def template(name="job-0", labels=None, namespace="default"):
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
    }


def policy(name, *, selector=None, priority=0, preemption="Never", namespace="default", **meta):
    metadata = {"name": name, **meta}
    if namespace:
        metadata["namespace"] = namespace
    label = names.POLICY_ID if namespace else names.CLUSTER_POLICY_ID
    metadata.setdefault("labels", {label: f"id-{name}"})
    base = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return {
        "metadata": metadata,
        "spec": {
            "resourceSelectors": [{**base, **(selector or {})}],
            "priority": priority,
            "preemption": preemption,
        },
    }


@pytest.mark.parametrize(
    ("candidates", "winner"),
    [
        ([], None),
        ([policy("all")], "all"),
        ([policy("all"), policy("named", selector={"name": "job-0"})], "named"),
        (
            [
                policy("by-label", selector={"labelSelector": {"matchLabels": {"a": "b"}}}),
                policy("all"),
            ],
            "by-label",
        ),
        ([policy("other", selector={"name": "job-1"})], None),
        ([policy("elsewhere", selector={"namespace": "kube"})], None),
        ([policy("b"), policy("a")], "a"),
        ([policy("urgent", priority=1), policy("named", selector={"name": "job-0"})], "urgent"),
        ([policy("going", priority=9, deletionTimestamp="now"), policy("all")], "all"),
    ],
)
def test_priority_then_precision_then_name_decide(candidates, winner):
    best = policies.best_policy(candidates, template(labels={"a": "b"}))
    assert (best["metadata"]["name"] if best else None) == winner


@pytest.mark.parametrize(
    "namespace", ["kube-train", "kube-system", "karmada-system", "karmada-cluster", "karmada-es-a"]
)
def test_no_policy_wins_a_template_in_a_namespace_that_karmada_skips(namespace):
    candidate = policy("p", namespace=namespace)
    assert policies.best_policy([candidate], template(namespace=namespace)) is None


def always(name, **more):
    return policy(name, preemption="Always", **more)


@pytest.mark.parametrize(
    ("taker", "bound", "taken"),
    [
        (policy("never", priority=9), policy("low"), False),
        (always("same"), policy("low"), False),
        (always("high", priority=1), policy("low"), True),
        (always("pp"), policy("cpp", priority=9, namespace=""), True),
        (always("cpp", priority=9, namespace=""), policy("pp"), False),
        (always("cpp", priority=1, namespace=""), policy("other", namespace=""), True),
    ],
)
def test_only_always_preempts_and_only_upwards(taker, bound, taken):
    assert policies.preempts(taker, bound) is taken


def test_defaulting_adds_what_karmadas_webhook_adds_and_only_once():
    raw = {
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
        },
    }
    defaulted = policies.default_policy(raw, permanent_id="id")
    assert defaulted["metadata"]["labels"] == {names.POLICY_ID: "id"}
    assert defaulted["metadata"]["finalizers"] == [names.POLICY_FINALIZER]
    assert defaulted["spec"]["resourceSelectors"][0]["namespace"] == "ml"
    assert defaulted["spec"]["preemption"] == "Never"
    assert policies.default_policy(defaulted, permanent_id="other") == defaulted
    assert "labels" not in raw["metadata"]


def test_a_deleted_policy_gets_no_finalizer_back():
    raw = policy("p", deletionTimestamp="now")
    assert policies.default_policy(raw, permanent_id="id")["metadata"]["finalizers"] == []


def test_claims_of_both_kinds_are_read_written_and_removed():
    claimed = policies.claim(template(labels={"mine": "1"}), policy("pp"))
    assert policies.claimed_by(claimed) == "default/pp"
    by_cluster = policies.claim(claimed, policy("cpp", namespace=""))
    assert policies.claimed_by(by_cluster) == "cpp"
    assert policies.unclaim(by_cluster) == template(labels={"mine": "1"})


def test_work_and_binding_names_equal_recorded_ones():
    assert binding_name("LLM:x") == "llm.x-job"
    assert work_name("llm-training-trainer-0", "default") == "llm-training-trainer-0-55549d7546"
    assert work_name("j0", "default") == "j0-dcbc48d49"
