"""Validation of the HyperJob's plugins, which set up a framework over all sub-jobs."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from hyperjob_core.api.field import SPEC, Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.plugins import (
    MPI_MASTER,
    MPI_WORKER,
    PLUGINS,
    Kind,
    have_hosts,
    values_of,
)
from hyperjob_rules.validation.forms import pod_spec_of, task_names, tasks_of
from hyperjob_rules.validation.plugins import PLUGINS as VOLCANO_PLUGINS
from hyperjob_rules.validation.plugins import GivenArgument, validate_arguments, warn_of_a_part
from hyperjob_rules.validation.rules import Report
from hyperjob_rules.validation.split import sub_jobs

_ADDRESS: Final = re.compile(r"https?://[^\s/:]+:[0-9]{1,5}/?")


def validate_lighthouse(
    found: Mapping[str, GivenArgument], jobs: list[Object], path: Path, report: Report
) -> None:
    """Check where plugin torchft finds its lighthouse."""
    task, address = found.get("lighthouse"), found.get("address")
    if task is None and address is None:
        report.add("L21.no-lighthouse", path)
    if task is not None and address is not None:
        report.add("L21.two-lighthouses", address.path, f"--address={address.value}")
    if address is not None and not _ADDRESS.fullmatch(address.value):
        report.add("L21.address", address.path, f"--address={address.value}")
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
        report.add(
            "L21.many", task.path, f"--lighthouse={task.value}", task=task.value, count=count
        )
    elif shared:
        report.warn("L21.lost-together", task.path, task=task.value)


_JOBS: Final = SPEC.child("replicatedJobs")
_KEY_PAIR: Final = frozenset({"ssh-private-key", "ssh-public-key"})
_DEFAULT_TASKS: Final[Mapping[tuple[str, str], str]] = {
    ("mpi", "master"): MPI_MASTER,
    ("mpi", "worker"): MPI_WORKER,
}
"""The tasks that a plugin needs by default, if no argument names another one."""


def validate_hyperjob_plugins(
    plugins: Object, jobs: list[Object], path: Path, report: Report, *, min_available: int | None
) -> None:
    """Check the plugins of a HyperJob, their arguments, and the templates that they change."""
    counts = [sub_jobs(job) for job in jobs]
    total = None if None in counts else sum(count for count in counts if count)
    for name in sorted(plugins):
        at = path.key(name)
        plugin = PLUGINS.get(name)
        if plugin is None:
            report.unsupported("L12.unknown-plugin", at, name, tuple(PLUGINS))
            continue
        found = validate_arguments(name, plugins[name], plugin.flags, at, report)
        _validate_tasks(name, found, jobs, at, report)
        if name == "mpi":
            _validate_launcher(found, jobs, at, report)
        if name == "torchft":
            validate_lighthouse(found, jobs, at, report)
        if plugin.one_world and "torchft" in plugins:
            report.add("L21.two-worlds", at)
        if plugin.one_world:
            for index, job in enumerate(jobs):
                warn_of_a_part(
                    name,
                    job.get("templateSpec") or {},
                    _JOBS.index(index).child("templateSpec"),
                    report,
                )
        if plugin.fixed_world and min_available and total is not None and min_available < total:
            report.warn("L18.partial", at, count=total, available=min_available)
    if have_hosts(plugins):
        for field in _own_names(jobs):
            report.add("L17.own-hostname", field)


def _validate_tasks(
    name: str, found: Mapping[str, GivenArgument], jobs: list[Object], path: Path, report: Report
) -> None:
    """Check that the tasks of a plugin's arguments exist."""
    names = {task for job in jobs for task in task_names(tasks_of(job))}
    for flag, kind in PLUGINS[name].flags.items():
        if kind is not Kind.TASK:
            continue
        given = found.get(flag)
        task = given.value if given else _DEFAULT_TASKS.get((name, flag))
        if task is not None and task not in names:
            hint = report.hints.did_you_mean(task, sorted(names))
            at = given.path if given else path
            report.add("L13.no-task", at, f"--{flag}={task}", task=task, hint=hint)


def _validate_launcher(
    found: Mapping[str, GivenArgument], jobs: list[Object], path: Path, report: Report
) -> None:
    """Check that mpi has one launcher, whose hosts are not overwritten and let it log in."""
    given = found.get("master")
    task = given.value if given else MPI_MASTER
    counts = [sub_jobs(job) for job in jobs if task in task_names(tasks_of(job))]
    count = sum(1 if each is None else each for each in counts)
    if count > 1:
        at = given.path if given else path
        report.add("L15.many-launchers", at, f"--master={task}", task=task, count=count)
    several = sum(sub_jobs(job) or 2 for job in jobs) > 1
    for index, job in enumerate(jobs):
        plugins = (job.get("templateSpec") or {}).get("plugins") or {}
        at = _JOBS.index(index).child("templateSpec", "plugins")
        if "mpi" in plugins:
            report.add("L16.overwritten", at.key("mpi"))
        keys = values_of(plugins.get("ssh") or (), VOLCANO_PLUGINS["ssh"].flags).keys()
        if several and "ssh" in plugins and not keys >= _KEY_PAIR:
            report.warn("L16.keys", at.key("ssh"))


def _own_names(jobs: list[Object]) -> Iterator[Path]:
    """Yield the paths of fields that give pods a name of their own."""
    for index, job in enumerate(jobs):
        at = _JOBS.index(index).child("templateSpec", "tasks")
        for number, task in enumerate(tasks_of(job)):
            spec = pod_spec_of(task)
            for field in ("hostname", "subdomain"):
                if spec.get(field):
                    yield at.index(number).child("template", "spec", field)
