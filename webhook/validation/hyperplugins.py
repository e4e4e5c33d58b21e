"""The plugins of a HyperJob, which set up a framework over all sub-jobs."""

from collections.abc import Mapping
from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.arguments import Flags, Kind, validate_arguments
from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import INVALID, NOT_SUPPORTED, rule
from webhook.validation.suggest import did_you_mean

PLUGINS: Final[Mapping[str, Flags]] = {
    "env": {},
    "jax": {"coordinator": Kind.TASK, "port": Kind.PORT},
    "mpi": {"master": Kind.TASK, "worker": Kind.TASK, "port": Kind.PORT},
    "pytorch": {"master": Kind.TASK, "worker": Kind.TASK, "port": Kind.PORT},
    "svc": {"name-pattern": Kind.TEXT, "publish-not-ready-addresses": Kind.SWITCH},
}

UNKNOWN = rule(
    "L12",
    NOT_SUPPORTED,
    "supported values: {values}",
    "HyperJobs have no such plugin",
    "use one of the values listed, or a Volcano plugin in the templateSpec",
)
NO_TASK = rule(
    "L13",
    INVALID,
    'no replicatedJob has a task "{task}"{hint}',
    "an argument of a HyperJob plugin names a task that no template has",
    "use the name of a task",
)


def validate_hyperjob_plugins(
    plugins: Object, jobs: list[Object], path: Path, report: Report
) -> None:
    """Check the plugins of a HyperJob, and their arguments."""
    names = {name for job in jobs for name in _task_names(job)}
    for name in sorted(plugins):
        at = path.key(name)
        flags = PLUGINS.get(name)
        if flags is None:
            report.unsupported(UNKNOWN, at, name, tuple(PLUGINS))
            continue
        found = validate_arguments(name, plugins[name] or [], flags, at, report)
        for flag, argument in found.items():
            if flags[flag] is Kind.TASK and argument.value not in names:
                hint = did_you_mean(argument.value, sorted(names))
                value = f"--{flag}={argument.value}"
                report.add(NO_TASK, argument.path, value, task=argument.value, hint=hint)


def _task_names(job: Object) -> list[str]:
    tasks = (job.get("templateSpec") or {}).get("tasks") or ()
    return [task.get("name") or f"default{index}" for index, task in enumerate(tasks)]
