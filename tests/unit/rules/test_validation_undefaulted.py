"""Objects that no defaulting has seen: a webhook that was away, or another API server's copy."""

from typing import Any

import pytest

from hyperjob_core.api.limits import MAX_PODS, MAX_SPEC_BYTES
from hyperjob_core.api.names import MAX_TOKEN, RESTART_REQUEST
from hyperjob_rules.validation.bounds import validate_size
from hyperjob_rules.validation.context import needs
from hyperjob_rules.validation.create import Repair, validate_create
from hyperjob_rules.validation.hyperjob import validate_requests
from hyperjob_rules.validation.rules import MAX_REMARKS, Report
from hyperjob_rules.validation.split import sub_jobs
from hyperjob_rules.validation.update import validate_update

GPU = "nvidia.com/gpu"


def hyperjob(pod: dict[str, Any], **spec: Any) -> dict[str, Any]:
    task = {"name": "t", "replicas": 1, "minAvailable": 1, "template": {"spec": pod}}
    job = {"name": "a", "replicas": 2, "templateSpec": {"minAvailable": 1, "tasks": [task]}}
    return {"metadata": {"name": "x", "namespace": "n"}, "spec": {"replicatedJobs": [job], **spec}}


def pod(**resources: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "resources": resources}]}


def test_the_usual_grace_counts_where_a_checkpoint_names_none() -> None:
    for grace, is_told in ((29, True), (30, False)):
        made = {**pod(), "terminationGracePeriodSeconds": grace}
        decision = validate_create(hyperjob(made, checkpoint={"directory": "/data"}))
        told = [text for text in decision.warnings if "terminationGracePeriodSeconds" in text]
        assert bool(told) is is_told, decision.warnings


def test_each_of_many_equal_pods_is_told_and_none_again_after_a_change_elsewhere() -> None:
    old = hyperjob({**pod(), "terminationGracePeriodSeconds": -1, "restartPolicy": "Never"})
    (job,) = old["spec"]["replicatedJobs"]
    (task,) = job["templateSpec"]["tasks"]
    tasks = [{**task, "name": f"t{number}"} for number in range(200)]
    old["spec"]["replicatedJobs"] = [
        {"name": name, "templateSpec": {"tasks": tasks}} for name in ("a", "b", "c")
    ]
    told = validate_create(old)
    assert (told.errors, len(told.warnings)) == ((), MAX_REMARKS)
    assert validate_update({**old, "spec": {**old["spec"], "maxDomains": 3}}, old).warnings == ()


def test_an_error_after_a_number_that_is_whole_is_told() -> None:
    raw = hyperjob(pod(), minAvailable=2.0, ttlSecondsAfterFinished="soon")
    raw["spec"]["replicatedJobs"][0]["replicas"] = 2.0
    found = [error.field for error in validate_create(raw).errors]
    assert found == ["spec.ttlSecondsAfterFinished"]


def test_a_task_that_loses_its_replicas_of_none_gets_no_warning_of_its_gang() -> None:
    old, new = hyperjob(pod()), hyperjob(pod())
    for raw in (old, new):
        raw["status"] = {"jobs": [{"name": "x-a-0"}]}
        raw["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0] |= {
            "replicas": 0,
            "minAvailable": 0,
        }
    del new["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["replicas"]
    warnings = validate_update(new, old).warnings
    assert not [text for text in warnings if "minAvailable" in text], warnings


@pytest.mark.parametrize(("mode", "is_taken"), [(-1, False), (0, True), (511, True), (512, False)])
def test_modes_of_files_are_between_0_and_0777(mode: int, is_taken: bool) -> None:
    volume = {"name": "v", "configMap": {"name": "m", "defaultMode": mode}}
    found = validate_create(hyperjob({**pod(), "volumes": [volume]})).errors
    assert (not found) is is_taken, found


@pytest.mark.parametrize(
    ("capabilities", "is_taken"),
    [(None, True), ({}, True), ({"add": ["NET_ADMIN"]}, True), ({"add": ["CAP_SYS_ADMIN"]}, False)],
)
def test_a_container_without_capabilities_may_forbid_escalation(
    capabilities: dict[str, Any] | None, is_taken: bool
) -> None:
    made = pod()
    context: dict[str, Any] = {"allowPrivilegeEscalation": False}
    made["containers"][0]["securityContext"] = context | (
        {} if capabilities is None else {"capabilities": capabilities}
    )
    found = validate_create(hyperjob(made)).errors
    assert (not found) is is_taken, found


def split(replicas: int | None, **policy: Any) -> dict[str, Any]:
    one = pod(limits={GPU: "1"})
    task = {"name": "t", "replicas": 2, "template": {"spec": one}}
    made: dict[str, Any] = {"name": "a", "templateSpec": {"tasks": [task]}}
    if replicas is not None:
        made["replicas"] = replicas
    return {**made, "splitPolicy": policy} if policy else made


STATIC = {"mode": "static", "accelerators": 5, "acceleratorType": GPU}


@pytest.mark.parametrize(
    ("job", "count"),
    [
        ({}, 1),
        (split(None), 1),
        (split(0), 0),
        (split(-1), 0),
        (split(3), 3),
        (split(None, **STATIC), 3),
        (split(1, **{**STATIC, "accelerators": 4}), 2),
        (split(2, **STATIC), 2),
        (split(None, **{**STATIC, "mode": "auto"}), None),
        (split(1, mode="auto"), None),
        (split(None, mode="static"), 1),
        (split(4, mode="static", accelerators=4), 4),
        (split(None, **{**STATIC, "acceleratorType": "other"}), 1),
    ],
)
def test_the_number_of_sub_jobs_is_known_without_defaults(
    job: dict[str, Any], count: int | None
) -> None:
    assert sub_jobs(job) == count


def test_pods_are_counted_by_the_templates_of_all_sub_jobs() -> None:
    def told(*replicas: int | None, sub_jobs: int = 1) -> bool:
        made = hyperjob(pod())
        job = made["spec"]["replicatedJobs"][0]
        (task,) = job["templateSpec"]["tasks"]
        job["replicas"] = sub_jobs
        job["templateSpec"]["tasks"] = [
            {**task, "name": f"t{number}", "replicas": each} for number, each in enumerate(replicas)
        ]
        return any("pods in all sub-jobs" in str(each) for each in validate_create(made).errors)

    assert told(MAX_PODS, 0, None) is False
    assert told(MAX_PODS, 1) is True
    assert told(MAX_PODS // 2, sub_jobs=2) is False
    assert told(MAX_PODS // 2 + 1, sub_jobs=2) is True


@pytest.mark.parametrize("value", [7, None, [], {}, True])
def test_a_request_that_is_no_text_is_the_schemas_to_refuse(value: object) -> None:
    made = hyperjob(pod())
    asked = {**made, "metadata": {**made["metadata"], "annotations": {RESTART_REQUEST: value}}}
    report = Report()
    validate_requests(asked, report)
    validate_requests(asked, report, before=made)
    for metadata in (None, [], {"annotations": None}, {"annotations": []}):
        validate_requests({"metadata": metadata}, report)
    assert not report.refusals


def test_a_token_is_judged_where_it_is_new() -> None:
    def told(text: str, *before: str) -> list[str]:
        made, report = {"metadata": {"annotations": {RESTART_REQUEST: text}}}, Report()
        old = [{"metadata": {"annotations": {RESTART_REQUEST: each}}} for each in before]
        validate_requests(made, report, **({"before": old[0]} if old else {}))
        return [each.error.field for each in report.refusals]

    field = [f"metadata.annotations[{RESTART_REQUEST}]"]
    assert told("x" * MAX_TOKEN) == told("") == told(" ") == []
    assert told("x" * (MAX_TOKEN + 1)) == told("x" * (MAX_TOKEN + 1), "y") == field
    assert told("x" * (MAX_TOKEN + 1), "x" * (MAX_TOKEN + 1)) == []
    assert told("short " + "x" * 999) == []


NEEDING: list[tuple[dict[str, Any], set[tuple[str, str]]]] = [
    ({}, set()),
    ({"serviceAccountName": "default"}, set()),
    ({"serviceAccountName": "a"}, {("ServiceAccount", "a")}),
    ({"imagePullSecrets": [{"name": "a"}, {}, {"name": "b"}]}, {("Secret", "a"), ("Secret", "b")}),
    ({"volumes": [{"configMap": {"name": "a"}}, {"configMap": {}}]}, {("ConfigMap", "a")}),
    ({"volumes": [{"configMap": {"name": "a", "optional": True}}]}, set()),
    ({"volumes": [{"secret": {"secretName": "a", "optional": False}}]}, {("Secret", "a")}),
    (
        {"volumes": [{"persistentVolumeClaim": {"claimName": "a"}}, {"emptyDir": {}}]},
        {("PersistentVolumeClaim", "a")},
    ),
    (
        {"volumes": [{"projected": {"sources": [
            {"secret": {"name": "a"}}, {"configMap": {"name": "b"}}, {"downwardAPI": {}},
            {"secret": {"name": "c", "optional": True}}, {"secret": {}},
        ]}}, {"projected": {}}]},
        {("Secret", "a"), ("ConfigMap", "b")},
    ),
    (
        {"containers": [{"env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "b", "optional": True}}},
            {"name": "C", "valueFrom": {"fieldRef": {}}}, {"name": "D"},
        ]}, {}]},
        {("Secret", "a")},
    ),
    (
        {"initContainers": [{"envFrom": [{"configMapRef": {"name": "a"}},
                                         {"secretRef": {"name": "b"}}, {"prefix": "x"}]}]},
        {("ConfigMap", "a"), ("Secret", "b")},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "wanted"), NEEDING)
def test_pods_need(spec: dict[str, Any], wanted: set[tuple[str, str]]) -> None:
    assert needs(hyperjob(spec)) == wanted


def test_what_has_no_pods_needs_its_claims_alone() -> None:
    for nothing in ({}, {"spec": None}, {"spec": {}}, {"spec": {"replicatedJobs": None}}):
        assert needs(nothing) == set()
    jobs: list[dict[str, Any]] = [
        {},
        {"templateSpec": {"tasks": [{}, {"template": None}, {"template": {}}]}},
        {"templateSpec": {"volumes": [
            {"volumeClaimName": "a"}, {"volumeClaimName": "b", "volumeClaim": {"x": 1}}, {},
        ]}},
    ]  # fmt: skip
    assert needs({"spec": {"replicatedJobs": jobs}}) == {("PersistentVolumeClaim", "a")}


def test_a_part_is_copied_once_for_all_its_repairs() -> None:
    raw = {"a": {"b": 1, "c": 2, "d": [1]}}
    repair = Repair(raw)
    repair.put(("a", "b"), 3)
    copied = repair.root["a"]
    repair.drop(("a", "c"), None)
    repair.put(("a", "d", 0), 4)
    repair.put(("a", "b", "x"), 5)
    assert repair.root["a"] is copied
    assert (repair.root, raw) == ({"a": {"b": 3, "d": [4]}}, {"a": {"b": 1, "c": 2, "d": [1]}})
    repair.drop((), None)
    assert repair.root == {}
    assert Repair([]).root == {}


def test_search_domains_have_2048_characters_with_the_spaces_between_them() -> None:
    for length, is_told in ((38, False), (39, True)):
        searches = [*("abcdefghij"[number] * 200 for number in range(10)), "k" * length]
        found = validate_create(hyperjob({**pod(), "dnsConfig": {"searches": searches}})).errors
        assert bool([each for each in found if each.field.endswith("searches")]) is is_told


@pytest.mark.parametrize(
    ("bytes_", "at_most", "is_told"),
    [(0, None, False), (1, None, True), (1, MAX_SPEC_BYTES, False), (1, MAX_SPEC_BYTES + 1, True)],
)
def test_a_spec_is_measured_unless_its_review_is_no_larger(
    bytes_: int, at_most: int | None, is_told: bool
) -> None:
    frame = len('{"x":""}')
    raw = {"metadata": {}, "spec": {"x": "y" * (MAX_SPEC_BYTES - frame + bytes_)}}
    report = Report()
    assert validate_size(raw, report, at_most=at_most) is not is_told
    assert [each.error.field for each in report.refusals] == ["spec"] * is_told


def test_a_task_without_pods_has_no_host_name_of_its_own() -> None:
    made = hyperjob({**pod(), "hostname": "h", "subdomain": "s"}, plugins={"pytorch": []})
    tasks = made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"]
    tasks += [{"name": "u"}, {"name": "v", "template": {}}]
    found = [str(error).partition(": ")[0] for error in validate_create(made).errors]
    named = [field for field in found if field.endswith(("hostname", "subdomain"))]
    at = "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec"
    assert named == [f"{at}.hostname", f"{at}.subdomain"]


def test_a_container_without_a_name_is_told_by_an_empty_one() -> None:
    made = hyperjob(
        {"containers": [{"image": "i", "volumeMounts": [{"name": "x", "mountPath": "/data"}]}]},
        checkpoint={"persistentVolumeClaim": "c", "path": "/data"},
    )
    found = [str(error) for error in validate_create(made).errors]
    assert any('container "" of task "t" mounts another volume there' in text for text in found)
