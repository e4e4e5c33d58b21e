"""The gate on ResourceBindings: closed at CREATE, kept closed while held, never anybody else's."""

import copy
import json
from base64 import b64decode, b64encode
from pathlib import Path

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_rules.configuration import MUTATE_RESOURCEBINDING
from hyperjob_rules.stamp import stamp
from hyperjob_rules.validation.context import Context
from hyperjob_webhook.admission import admit

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parent / "data/gated-bindings.jsonl").read_text().splitlines()
]
GATE = "training.volcano.sh/gate"
LABEL = "training.volcano.sh/binding"


def binding(*, affinity="hyperjob-gang", suspension=None, gate=None, **metadata):
    spec = {
        "resource": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j-t-0"},
        "placement": {"clusterAffinities": [{"affinityName": affinity, "clusterNames": ["m1"]}]},
    }
    if suspension is not None:
        spec["suspension"] = suspension
    if gate is not None:
        metadata["annotations"] = {**metadata.get("annotations", {}), GATE: gate}
    return {"kind": "ResourceBinding", "metadata": {"name": "j-t-0-job", **metadata}, "spec": spec}


def stamped(obj, operation):
    before = copy.deepcopy(obj)
    patch = stamp(obj, operation=operation)
    assert obj == before, "the input is never changed"
    return jsonpatch.apply_patch(obj, patch)


def volcano_global(obj):
    """Answer a CREATE as its webhook does: the whole suspension, unless it is suspended already."""
    if obj["spec"].get("suspension", {}).get("scheduling") is True:
        return obj
    return jsonpatch.apply_patch(
        obj, [{"op": "add", "path": "/spec/suspension", "value": {"scheduling": True}}]
    )


def released(obj):
    """Release a binding as Volcano Global's dispatcher does, wiping what else is suspended."""
    return jsonpatch.apply_patch(
        obj, [{"op": "add", "path": "/spec/suspension", "value": {"scheduling": False}}]
    )


CREATES = {
    "with nothing suspended": None,
    "with a null suspension": "null",
    "with the suspension of the policy": {"dispatching": True},
    "after Volcano Global has replaced the suspension": {"scheduling": True},
    "with both suspended already": {"dispatching": True, "scheduling": True},
    "with fields set to false": {"dispatching": False, "scheduling": False},
}


@pytest.mark.parametrize("suspension", CREATES.values(), ids=CREATES.keys())
def test_a_new_binding_of_a_gang_is_suspended_held_and_labelled(suspension):
    obj = binding()
    if suspension is not None:
        obj["spec"]["suspension"] = None if suspension == "null" else suspension
    result = stamped(obj, "CREATE")
    assert result["spec"]["suspension"] == {"dispatching": True, "scheduling": True}
    assert result["metadata"]["annotations"] == {GATE: "held"}
    assert result["metadata"]["labels"] == {LABEL: "hyperjob"}


def test_a_binding_that_its_policy_holds_stays_as_it_is():
    obj = binding(affinity="hyperjob-held", suspension={"dispatching": True})
    assert stamp(obj, operation="CREATE") == []
    opened = binding(affinity="hyperjob-held", suspension={})
    assert stamp(opened, operation="UPDATE", old=obj) == [], "Karmada follows the opened policy"


def test_a_gang_that_our_own_queue_admission_let_in_stays_held_beside_volcano_global():
    obj = stamped(binding(affinity="hyperjob-held", suspension={"dispatching": True}), "CREATE")
    both = stamped(volcano_global(obj), "CREATE")
    assert both["spec"]["suspension"] == {"dispatching": True, "scheduling": True}
    assert both["metadata"]["annotations"] == {GATE: "held"}
    let_go = stamped(released(both), "UPDATE")
    assert let_go["spec"]["suspension"] == {"dispatching": True, "scheduling": False}


def test_a_restored_binding_starts_held_whatever_its_annotation_says():
    assert stamped(binding(gate="open"), "CREATE")["metadata"]["annotations"][GATE] == "held"


def test_create_survives_volcano_global_before_and_after_us():
    from_policy = binding(suspension={"dispatching": True})
    first = volcano_global(stamped(from_policy, "CREATE"))
    again = stamped(first, "CREATE")
    other_order = stamped(volcano_global(from_policy), "CREATE")
    for result in (first, again, other_order):
        assert result["spec"]["suspension"] == {"dispatching": True, "scheduling": True}


def test_a_release_while_held_keeps_dispatching_suspended():
    admitted = released(stamped(binding(), "CREATE"))
    assert admitted["spec"]["suspension"] == {"scheduling": False}
    result = stamped(admitted, "UPDATE")
    assert result["spec"]["suspension"] == {"scheduling": False, "dispatching": True}


def test_a_detector_sync_that_wipes_the_suspension_is_undone_while_held():
    obj = binding(gate="held")
    assert stamped(obj, "UPDATE")["spec"]["suspension"] == {"dispatching": True}


COMPONENT = {
    "name": "vcjob",
    "replicas": 8,
    "replicaRequirements": {"resourceRequest": {"nvidia.com/gpu": "1"}},
}


def with_components(*components, gate="open", affinity="hyperjob-gang", **spec):
    obj = binding(gate=gate, affinity=affinity, suspension={"dispatching": True})
    return obj | {"spec": {**obj["spec"], "components": list(components), **spec}}


@pytest.mark.parametrize("gate", ["held", "open"])
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_volcano_global_counts_the_component_of_a_binding_as_replicas(operation, gate):
    spec = stamped(with_components(COMPONENT, gate=gate), operation)["spec"]
    assert spec["replicas"] == 8
    assert spec["replicaRequirements"] == {"resourceRequest": {"nvidia.com/gpu": "1"}}
    assert spec["components"] == [COMPONENT]


def test_the_replicas_that_a_detector_sync_removes_come_back_without_a_request_after_the_end():
    ended = {"name": "vcjob", "replicas": 8}
    spec = stamped(with_components(ended, replicaRequirements=None), "UPDATE")["spec"]
    assert (spec["replicas"], spec["replicaRequirements"]) == (8, None)


UNCOUNTED = {
    "quota that the controller has given back": with_components(COMPONENT, replicas=8),
    "components of another interpreter": with_components(COMPONENT, {"name": "b", "replicas": 1}),
    "a component without pods": with_components({"name": "vcjob", "replicas": 0}),
    "a component that is text": with_components("vcjob"),
    "replicas that are text": with_components({"name": "vcjob", "replicas": "8"}),
    "no component": with_components(),
    "a gang of the queues of HyperJob": with_components(COMPONENT, affinity="hyperjob-held"),
    "a binding of others": with_components(COMPONENT, affinity="mine"),
}


@pytest.mark.parametrize("obj", UNCOUNTED.values(), ids=UNCOUNTED.keys())
def test_the_webhook_adds_no_replicas_for(obj):
    assert stamp(obj, operation="UPDATE") == []


def of_resource(resource):
    return binding() | {"spec": binding()["spec"] | {"resource": resource}}


def placed(**placement):
    return {"metadata": {}, "spec": {"placement": placement}}


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
UNTOUCHED = {
    "UPDATE": {
        "an open gate": binding(gate="open", suspension={"scheduling": False}),
        "no gate annotation": binding(suspension={"scheduling": False}),
        "an unknown gate": binding(gate="ajar"),
        "a held gate that is closed": binding(gate="held", suspension={"dispatching": True}),
        "an object being deleted": binding(gate="held", **GOING),
        "another affinity name, held": binding(affinity="mine", gate="held"),
    },
    "CREATE": {
        "an ungated HyperJob": binding(affinity="hyperjob"),
        "what goes with a vcjob into its cluster": of_resource(
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "ServiceExport"}
        ),
        "a Job of Kubernetes": of_resource({"apiVersion": "batch/v1", "kind": "Job"}),
        "a binding of no resource": placed(**binding()["spec"]["placement"]),
        "a resource that is text": of_resource("Job"),
        "another affinity name": binding(affinity="hyperjob-gang-of-mine"),
        "no placement": {"metadata": {}, "spec": {}},
        "no spec": {"metadata": {}},
        "a clusterAffinity without a name": placed(clusterAffinity={"clusterNames": ["m1"]}),
        "null affinities": placed(clusterAffinities=None),
    },
    "DELETE": {"a deletion": binding(gate="held")},
    "CONNECT": {"a connect": binding()},
}


@pytest.mark.parametrize(
    ("operation", "case"), [(each, case) for each in UNTOUCHED for case in UNTOUCHED[each]]
)
def test_no_patch_for(operation, case):
    assert stamp(UNTOUCHED[operation][case], operation=operation) == []


@pytest.mark.parametrize("event", RECORDED, ids=lambda e: e["object"]["metadata"]["name"])
def test_recorded_bindings_are_held_again_after_every_wipe(event):
    """Each state that a held binding was seen in, wiped as the dispatcher does, is held again."""
    obj = event["object"]
    gate = obj["metadata"]["annotations"].get(GATE)
    wiped = released(obj) if "suspension" in obj["spec"] else obj
    patch = stamp(wiped, operation="UPDATE")
    if gate == "held":
        assert patch == [{"op": "add", "path": "/spec/suspension/dispatching", "value": True}]
    else:
        assert patch == []


def test_the_recordings_hold_bindings_of_every_kind():
    gates = {event["object"]["metadata"]["annotations"].get(GATE) for event in RECORDED}
    assert gates == {"held", "open", None}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
SUSPENSIONS = st.none() | st.dictionaries(
    st.sampled_from(["dispatching", "scheduling", "dispatchingOnClusters", "other"]), JSON
)
LABELS = st.dictionaries(st.text(max_size=5), st.text(max_size=5))
ANNOTATIONS = st.dictionaries(
    st.sampled_from([GATE, "a/b~c"]), st.sampled_from(["held", "open", "x"])
)
RESOURCES = st.fixed_dictionaries(
    {
        "apiVersion": st.just("batch.volcano.sh/v1alpha1"),
        "kind": st.sampled_from(["Job", "ServiceExport"]),
    }
)
AFFINITIES = st.lists(
    st.fixed_dictionaries({"affinityName": st.sampled_from(["hyperjob-gang", "hyperjob", "x"])}),
    max_size=2,
)
OPTIONAL = {
    "suspension": SUSPENSIONS,
    "components": JSON | st.just([COMPONENT]),
    "replicas": JSON,
    "replicaRequirements": JSON,
}
BINDINGS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {}, optional={"labels": st.none() | LABELS, "annotations": st.none() | ANNOTATIONS}
        ),
        "spec": st.fixed_dictionaries(
            {
                "resource": RESOURCES,
                "placement": st.fixed_dictionaries({"clusterAffinities": AFFINITIES}),
            },
            optional=OPTIONAL,
        ),
    }
)


@given(BINDINGS, st.sampled_from(["CREATE", "UPDATE"]))
def test_stamping_is_idempotent_and_touches_only_its_own_fields(obj, operation):
    once = stamped(obj, operation)
    assert stamp(once, operation=operation) == []
    own = ("dispatching",) if operation == "UPDATE" else ("dispatching", "scheduling")

    def others(binding):
        suspension = binding["spec"].get("suspension") or {}
        metadata = binding["metadata"]
        return (
            {k: v for k, v in suspension.items() if k not in own},
            {k: v for k, v in (metadata.get("labels") or {}).items() if k != LABEL},
            {k: v for k, v in (metadata.get("annotations") or {}).items() if k != GATE},
            binding["spec"]["placement"],
        )

    assert others(once) == others(obj)


@given(JSON, st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]))
def test_stamping_takes_any_json(value, operation):
    for obj in (
        {"spec": value},
        {"metadata": value, "spec": {"placement": {"clusterAffinities": value}}},
        {"spec": {"placement": {"clusterAffinities": [value, {"affinityName": value}]}}},
    ):
        assert stamp(obj, operation=operation) == []


HELD = binding(gate="held", suspension={"dispatching": True}, labels={LABEL: "hyperjob"})
OPENED = {
    "the gate": binding(gate="open", suspension={"dispatching": True}),
    "no gate and no label": binding(suspension={"dispatching": True}),
    "dispatching": binding(gate="held", suspension={"dispatching": False}),
    "no suspension": binding(gate="held"),
    "another affinity name": binding(affinity="mine", gate="open"),
    "the name of an ungated HyperJob": binding(affinity="hyperjob"),
    "another resource": {**binding(), "spec": {"resource": {"kind": "Deployment"}}},
}
CONTROLLER = Context(controllers=frozenset({"hyperjob-controller"}))


def updated(old, new, *, user):
    """Return what an UPDATE of a binding by a user leads to."""
    request = {
        "uid": "u",
        "kind": {"group": "work.karmada.io", "version": "v1alpha2", "kind": "ResourceBinding"},
        "operation": "UPDATE",
        "userInfo": {"username": user},
        "object": new,
        "oldObject": old,
    }
    head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    body = json.dumps({**head, "request": request}).encode()
    response = json.loads(admit(MUTATE_RESOURCEBINDING, body, CONTROLLER).body)["response"]
    patch = json.loads(b64decode(response.get("patch", b64encode(b"[]"))))
    return jsonpatch.apply_patch(new, patch)


def is_shut(obj):
    metadata = obj["metadata"]
    return (
        metadata["annotations"][GATE] == "held"
        and metadata["labels"][LABEL] == "hyperjob"
        and obj["spec"]["suspension"]["dispatching"] is True
    )


@pytest.mark.parametrize("new", OPENED.values(), ids=OPENED.keys())
@pytest.mark.parametrize("user", ["kdev", "hyperjob-controller"])
def test_a_held_gate_is_opened_by_the_controller_alone(new, user):
    result = updated(HELD, new, user=user)
    if user == "kdev":
        assert is_shut(result)
    elif new["metadata"].get("annotations", {}).get(GATE) != "held":
        assert result == new


@pytest.mark.parametrize("second", OPENED.values(), ids=OPENED.keys())
@pytest.mark.parametrize("first", OPENED.values(), ids=OPENED.keys())
def test_two_updates_open_no_held_gate(first, second):
    """A binding that names nobody's gang any more was free to be opened by the next UPDATE."""
    between = updated(HELD, first, user="kdev")
    assert is_shut(updated(between, second, user="kdev"))


def test_a_gate_that_is_open_stays_open_for_everybody():
    new = binding(gate="open", suspension={"dispatching": False})
    assert stamp(new, operation="UPDATE", old=binding(gate="open")) == []


@pytest.mark.parametrize("labels", [{}, {LABEL: "mine"}])
def test_the_annotation_of_a_gate_alone_makes_no_gang(labels):
    old = binding(affinity="mine", gate="held", labels=labels)
    assert stamp(binding(affinity="mine"), operation="UPDATE", old=old) == []


@pytest.mark.parametrize(
    ("affinity", "labels", "held"),
    [
        ("hyperjob-gang", {}, True),
        ("hyperjob-held", {}, True),
        ("another", {LABEL: "hyperjob"}, True),
        ("another", {}, False),
    ],
)
def test_a_gate_is_held_by_its_annotation_with_an_affinity_name_or_the_label(
    affinity, labels, held
):
    old = binding(affinity=affinity, gate="held", labels=labels)
    new = binding(affinity="another", gate="open")
    assert bool(stamp(new, operation="UPDATE", old=old)) is held
