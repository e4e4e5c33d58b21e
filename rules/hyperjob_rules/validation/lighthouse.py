"""Validation of the lighthouse of plugin torchft: one task of one sub-job, or an address."""

import re
from collections.abc import Mapping
from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.arguments import GivenArgument
from hyperjob_rules.validation.forms import task_names, tasks_of
from hyperjob_rules.validation.rules import FORBIDDEN, INVALID, REQUIRED, WARNING, Report, rule
from hyperjob_rules.validation.split import sub_jobs

NO_LIGHTHOUSE = rule(
    "L21.no-lighthouse",
    REQUIRED,
    "one of `--lighthouse` (a task) or `--address` must be given",
    "plugin torchft has neither a lighthouse task nor an address",
    "add a task that runs torchft_lighthouse, and name it",
)
TWO_LIGHTHOUSES = rule(
    "L21.two-lighthouses",
    FORBIDDEN,
    "may not be given together with `--lighthouse`",
    "plugin torchft has both a lighthouse task and an address",
    "keep one of the two",
)
ADDRESS = rule(
    "L21.address",
    INVALID,
    "must be http://HOST:PORT",
    "the address of the lighthouse cannot be used",
    "write it as http://lighthouse.example:29510",
)
MANY = rule(
    "L21.many",
    INVALID,
    'there must be one sub-job with a task "{task}", the lighthouse of all; there are {count}',
    "several sub-jobs run a lighthouse, and the replica groups would never meet",
    "put the lighthouse into a replicatedJob of its own, with one replica and one pod",
)
TWO_WORLDS = rule(
    "L21.two-worlds",
    FORBIDDEN,
    "may not be used together with plugin torchft, which makes a world of each sub-job",
    "a HyperJob has plugin torchft and a plugin that makes one world of all sub-jobs",
    "remove one of the two",
)
LOST_TOGETHER = rule(
    "L21.lost-together",
    WARNING,
    'task "{task}" is in one sub-job with others: with that sub-job the lighthouse is lost,'
    " and the other sub-jobs know only its old address",
    "the lighthouse shares a sub-job with tasks that train",
    "put the lighthouse into a replicatedJob of its own, with one replica and one pod",
)

_ADDRESS: Final = re.compile(r"https?://[^\s/:]+:[0-9]{1,5}/?")


def validate_lighthouse(
    found: Mapping[str, GivenArgument], jobs: list[Object], path: Path, report: Report
) -> None:
    """Check where plugin torchft finds its lighthouse."""
    task, address = found.get("lighthouse"), found.get("address")
    if task is None and address is None:
        report.add(NO_LIGHTHOUSE, path)
    if task is not None and address is not None:
        report.add(TWO_LIGHTHOUSES, address.path, f"--address={address.value}")
    if address is not None and not _ADDRESS.fullmatch(address.value):
        report.add(ADDRESS, address.path, f"--address={address.value}")
    if task is None:
        return
    count, shared = 0, False
    for job in jobs:
        tasks = tasks_of(job)
        if task.value in (names := task_names(tasks)):
            number = sub_jobs(job)
            count += 1 if number is None else number
            pods = tasks[names.index(task.value)].get("replicas") or 1
            shared = shared or len(tasks) > 1 or pods > 1
    if count > 1:
        report.add(MANY, task.path, f"--lighthouse={task.value}", task=task.value, count=count)
    elif shared:
        report.warn(LOST_TOGETHER, task.path, task=task.value)
