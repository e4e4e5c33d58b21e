"""Objects of caches that share what is equal in them."""

import copy
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_controller.caches import Shared
from hyperjob_core.kube.informer import strip_managed_fields

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, "", "a"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab1"), inner),
    max_leaves=12,
)


@given(st.lists(values, max_size=12), st.integers(1, 6))
def test_what_is_shared_is_the_same_to_the_last_byte(given_: list[Any], known: int) -> None:
    shared = Shared(known)
    for value in given_:
        assert orjson.dumps(shared.part(copy.deepcopy(value))) == orjson.dumps(value)


def vcjob(index: int) -> dict[str, Any]:
    command = ["python", "train.py", "--model", "llm", "--steps", "100000"]
    env = [{"name": "INDEX", "value": str(index)}, {"name": "MODE", "value": "train"}]
    container = {"name": "main", "image": "i", "command": command, "env": env}
    owner = {"kind": "HyperJob", "name": "hj", "uid": "1"}
    return {
        "metadata": {
            "name": f"hj-{index}",
            "namespace": "ns",
            "ownerReferences": [owner],
            "managedFields": [{}],
        },
        "spec": {"tasks": [{"name": "w", "template": {"spec": {"containers": [container]}}}]},
    }


def test_sub_jobs_of_one_template_share_all_that_is_equal_in_them() -> None:
    transform = Shared().of(strip_managed_fields)
    one, two = (transform(vcjob(index)) for index in range(2))
    assert "managedFields" not in one["metadata"]
    assert one["metadata"]["ownerReferences"] is two["metadata"]["ownerReferences"]
    first, second = (
        made["spec"]["tasks"][0]["template"]["spec"]["containers"][0] for made in (one, two)
    )
    assert first is not second
    assert first["command"] is second["command"]
    assert first["env"][1] is second["env"][1]
    assert [each["env"][0]["value"] for each in (first, second)] == ["0", "1"]


def test_what_is_used_again_is_kept_and_what_is_not_is_made_anew() -> None:
    shared = Shared(known=2)
    used, unused = shared.part([1]), shared.part([2])
    for number in (3, 4, 5, 6):
        assert shared.part([1]) is used
        shared.part([number])
    assert shared.part([1]) is used
    assert shared.part([2]) is not unused


def running(name: str) -> dict[str, Any]:
    """Return a HyperJob as the JSON parser returns it."""
    made = {
        "metadata": {"name": name},
        "status": {
            "clusters": [{"name": "a", "jobs": 1}, {"name": "b", "jobs": 1}],
            "jobs": [{"name": f"{name}-0", "cluster": "a-long-name", "phase": "Running"}],
            "replicatedJobsStatus": [{"name": "t", "jobStates": {f"{name}-0": {}}}],
        },
    }
    found: dict[str, Any] = orjson.loads(orjson.dumps(made))
    return found


def test_statuses_share_all_that_is_equal_in_them() -> None:
    transform = Shared().of(strip_managed_fields)
    one, two = (transform(running(name)) for name in ("hj", "hk"))
    first, second = one["status"], two["status"]
    assert first["clusters"] is second["clusters"]
    assert first["jobs"][0]["cluster"] is second["jobs"][0]["cluster"]
    assert first["jobs"][0]["name"] is next(iter(first["replicatedJobsStatus"][0]["jobStates"]))
    assert [each["status"]["jobs"][0]["name"] for each in (one, two)] == ["hj-0", "hk-0"]
