"""The size of a HyperJob, and Volcano Global's webhook: facts of objects of any form."""

from typing import Any

import pytest

from hyperjob_core.api.limits import count_tasks
from hyperjob_core.api.volcano_global import queues_bindings


def job(tasks: Any) -> Any:
    return {"templateSpec": {"tasks": tasks}}


@pytest.mark.parametrize(
    ("spec", "number"),
    [
        ({"replicatedJobs": [job([1, 2]), job([3])]}, 3),
        ({"replicatedJobs": [job([]), job([])]}, 2),
        ({"replicatedJobs": [{}, 3, job("text"), {"templateSpec": 1}]}, 4),
        ({"replicatedJobs": [job([1, 2, 3]), None]}, 3),
        *((spec, 0) for spec in ({}, {"replicatedJobs": {}}, None, [], "text")),
    ],
)
def test_tasks_are_counted_and_each_replicated_job_counts_at_least_once(
    spec: Any, number: int
) -> None:
    assert count_tasks(spec) == number


RULE = {"apiGroups": ["work.karmada.io"], "resources": ["resourcebindings"]}
URL = {"url": "https://host:443/resourcebindings/mutate"}


def webhook(client: Any = URL, *rules: Any) -> Any:
    return {"clientConfig": client, "rules": list(rules or (RULE,))}


@pytest.mark.parametrize(
    ("configurations", "queues"),
    [
        ([{"webhooks": [webhook()]}], True),
        ([{"webhooks": [webhook({"service": {"path": "/resourcebindings/mutate"}})]}], True),
        ([{}, {"webhooks": [webhook(URL, {}, RULE), webhook({})]}], True),
        ([{"webhooks": [webhook({"url": "https://host/other"})]}], False),
        ([{"webhooks": [webhook({"service": {"name": "x"}})]}], False),
        ([{"webhooks": [webhook(URL, {**RULE, "apiGroups": ["batch"]})]}], False),
        ([{"webhooks": [webhook(URL, {**RULE, "resources": ["works"]})]}], False),
        ([{"webhooks": [{"clientConfig": URL}]}, {"webhooks": None}], False),
        ([{"webhooks": [{"rules": [RULE]}]}], False),
        ([], False),
    ],
)
def test_volcano_global_is_known_by_path_and_rules_of_a_webhook(
    configurations: Any, queues: bool
) -> None:
    assert queues_bindings(configurations) is queues
