"""spec.checkpoint in the sub-jobs that are made: the claim, the grace period, the variables."""

from typing import Any

import pytest

from hyperjob_core.api.defaults import complete_template
from hyperjob_engine.expansion.templates import with_checkpoint
from hyperjob_engine.model.observed import Checkpoint, grace_of
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.plan import plan
from tests.support.podenv import pods_of
from tests.unit.engine.builders import cluster, group, hyperjob, observed, policy, task, template

Object = dict[str, Any]
CLAIM = {"persistentVolumeClaim": "runs", "path": "/runs", "gracePeriodSeconds": 120}
STORE = {"directory": "s3://bucket/run"}


def created(raw: Object) -> list[Object]:
    """Return the vcjobs that a plan makes, as the API server stores them."""
    made = plan(observed(raw, clusters=(cluster("a"), cluster("b")))).actions
    return [
        {**action.job, "metadata": {**action.job["metadata"], "uid": f"uid-{action.name}"}}
        for action in made
        if isinstance(action, CreateChild) and action.job is not None
    ]


def pod_spec(vcjob: Object) -> Object:
    return vcjob["spec"]["tasks"][0]["template"]["spec"]


def test_the_claim_is_mounted_in_all_containers_of_all_sub_jobs() -> None:
    for made in created(hyperjob(checkpoint=CLAIM)):
        spec = pod_spec(made)
        assert spec["volumes"] == [
            {"name": "hyperjob-checkpoints", "persistentVolumeClaim": {"claimName": "runs"}}
        ]
        assert [each["volumeMounts"] for each in spec["containers"]] == [
            [{"name": "hyperjob-checkpoints", "mountPath": "/runs"}]
        ]


def test_volumes_and_init_containers_of_the_template_stay() -> None:
    made = with_checkpoint(
        template(
            {
                "name": "worker",
                "template": {
                    "spec": {
                        "volumes": [{"name": "data"}],
                        "initContainers": [{"name": "fetch"}],
                        "containers": [{"name": "main", "volumeMounts": [{"name": "data"}]}],
                    }
                },
            }
        ),
        Checkpoint(directory="/runs", claim="runs"),
    )
    spec = pod_spec({"spec": made})
    mount = {"name": "hyperjob-checkpoints", "mountPath": "/runs"}
    assert [each["name"] for each in spec["volumes"]] == ["data", "hyperjob-checkpoints"]
    assert spec["initContainers"][0]["volumeMounts"] == [mount]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "data"}, mount]


@pytest.mark.parametrize(("own", "expected"), [(None, 120), (5, 5), (0, 0), (600, 600)])
def test_the_grace_period_of_a_template_wins(own: int | None, expected: int) -> None:
    each = task()
    if own is not None:
        each["template"]["spec"]["terminationGracePeriodSeconds"] = own
    checkpoint = Checkpoint(directory="/runs", grace_seconds=120)
    made = with_checkpoint(template(each), checkpoint)
    assert pod_spec({"spec": made})["terminationGracePeriodSeconds"] == expected
    assert grace_of(template(each), default=checkpoint.grace_seconds) == expected


def test_without_spec_checkpoint_the_template_is_as_it_was() -> None:
    (made, _) = created(hyperjob())
    assert made["spec"] == complete_template(template(task(replicas=8)))


def test_a_live_sub_job_is_never_compared_with_what_spec_checkpoint_adds() -> None:
    raw = hyperjob(checkpoint=CLAIM, plugins={"env": []})
    jobs = created(raw)
    pins = [policy(each["metadata"]["name"], cluster=c) for each, c in zip(jobs, "ab", strict=True)]
    again = plan(observed(raw, *jobs, *pins, clusters=(cluster("a"), cluster("b"))))
    assert again.actions == ()


@pytest.mark.parametrize(
    ("checkpoint", "status", "expected"),
    [
        pytest.param(None, {}, {}, id="no checkpoints"),
        pytest.param(STORE, {}, {"HYPERJOB_CHECKPOINT_DIR": "s3://bucket/run"}, id="an address"),
        pytest.param(CLAIM, {}, {"HYPERJOB_CHECKPOINT_DIR": "/runs"}, id="a claim"),
        pytest.param(
            CLAIM,
            {"checkpoint": {"resumeStep": 90}},
            {"HYPERJOB_CHECKPOINT_DIR": "/runs", "HYPERJOB_RESUME_STEP": "90"},
            id="a known step",
        ),
        pytest.param(
            CLAIM,
            {"checkpoint": {"resumeStep": 0}},
            {"HYPERJOB_CHECKPOINT_DIR": "/runs", "HYPERJOB_RESUME_STEP": "0"},
            id="step 0 is known too",
        ),
    ],
)
def test_plugin_env_tells_all_sub_jobs_the_same(
    checkpoint: Object | None, status: Object, expected: dict[str, str]
) -> None:
    spec = {} if checkpoint is None else {"checkpoint": checkpoint}
    raw = hyperjob(group(gpus=1), plugins={"env": []}, status=status, **spec)
    names = {"HYPERJOB_CHECKPOINT_DIR", "HYPERJOB_RESUME_STEP"}
    for made in created(raw):
        env = pods_of(made)[0].env
        assert {name: value for name, value in env.items() if name in names} == expected
