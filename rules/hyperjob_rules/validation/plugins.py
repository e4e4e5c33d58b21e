"""Validation of a vcjob's plugins: their names, and the tasks that their arguments name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.plugins import Flags, Kind
from hyperjob_rules.validation.arguments import GivenArgument, validate_arguments
from hyperjob_rules.validation.forms import task_names
from hyperjob_rules.validation.rules import INVALID, NOT_SUPPORTED, WARNING, Report, rule

TASK, PORT, TEXT, NUMBER, SWITCH = Kind.TASK, Kind.PORT, Kind.TEXT, Kind.NUMBER, Kind.SWITCH


@dataclass(frozen=True)
class VolcanoPlugin:
    """The arguments of a Volcano plugin, and the tasks that it needs."""

    flags: Flags = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    """Arguments that name a task without which the plugin refuses the job, with their defaults."""
    uses: Mapping[str, str] = field(default_factory=dict)
    """Arguments that name a task without which the plugin does nothing, with their defaults."""
    since: str = ""

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The arguments that name tasks."""
        return tuple(flag for flag, kind in self.flags.items() if kind is Kind.TASK)


PLUGINS: Final[Mapping[str, VolcanoPlugin]] = {
    "env": VolcanoPlugin(),
    "hcclrank": VolcanoPlugin({"master": TASK, "worker": TASK}, since="1.13"),
    "mpi": VolcanoPlugin(
        {"master": TASK, "worker": TASK, "port": PORT},
        needs={"master": "master", "worker": "worker"},
    ),
    "pytorch": VolcanoPlugin(
        {
            "master": TASK,
            "worker": TASK,
            "port": PORT,
            "wait-master-enabled": SWITCH,
            "wait-master-timeout": NUMBER,
            "wait-master-image": TEXT,
        },
        uses={"master": "master"},
    ),
    "ray": VolcanoPlugin(
        {
            "head": TASK,
            "headContainer": TEXT,
            "worker": TASK,
            "workerContainer": TEXT,
            "port": PORT,
            "dashboardPort": PORT,
            "clientPort": PORT,
        },
        uses={"head": "head"},
        since="1.13",
    ),
    "ssh": VolcanoPlugin(
        {
            "ssh-key-file-path": TEXT,
            "ssh-private-key": TEXT,
            "ssh-public-key": TEXT,
            "ssh-port": PORT,
        }
    ),
    "svc": VolcanoPlugin(
        {
            "publish-not-ready-addresses": SWITCH,
            "disable-network-policy": SWITCH,
            "inject-hosts-env": SWITCH,
        }
    ),
    "tensorflow": VolcanoPlugin(
        {"ps": TASK, "worker": TASK, "chief": TASK, "evaluator": TASK, "port": PORT}
    ),
}

UNKNOWN = rule(
    "V14.unknown-plugin",
    NOT_SUPPORTED,
    "supported values: {values}",
    "Volcano has no such plugin, and refuses the sub-jobs",
    "use one of the values listed; names are in lower case",
)
NO_MASTER = rule(
    "V2",
    INVALID,
    'there is no task "{task}", the master of plugin mpi{hint}',
    "Volcano refuses a job with the mpi plugin whose master task is missing",
    "name the task with --master=NAME",
)
NO_WORKER = rule(
    "X12.no-worker",
    INVALID,
    'there is no task "{task}", the worker of plugin mpi{hint}',
    "Volcano up to 1.14 refuses a job with the mpi plugin whose worker task is missing",
    "name the task with --worker=NAME",
)
NO_TASK = rule(
    "X12.no-task",
    INVALID,
    'there is no task "{task}"{hint}',
    "an argument of a plugin names a task that the template lacks",
    "use the name of a task of the template",
)
NO_EFFECT = rule(
    "X12.no-effect",
    WARNING,
    'has no effect: there is no task "{task}"; name it with `--{name}`',
    "a plugin looks for a task by its default name, and the template has none of that name",
    "name the task that the plugin is for",
)
VERSION = rule(
    "X14",
    WARNING,
    "needs Volcano {version} in the member clusters; older ones refuse the sub-job",
    "a plugin is unknown to older versions of Volcano",
    "make sure that all member clusters have that version",
)


def validate_plugins(plugins: Object, tasks: list[Object], path: Path, report: Report) -> None:
    """Check the plugins of one template, and their arguments against its tasks."""
    names = task_names(tasks)
    for name in sorted(plugins):
        at = path.key(name)
        plugin = PLUGINS.get(name)
        if plugin is None:
            report.unsupported(UNKNOWN, at, name, tuple(PLUGINS))
            continue
        if plugin.since:
            report.warn(VERSION, at, version=plugin.since)
        arguments = validate_arguments(
            name, plugins[name], plugin.flags, at, report, of_volcano=True
        )
        _validate_tasks(plugin, arguments, names, at, report)


def _validate_tasks(
    plugin: VolcanoPlugin,
    arguments: Mapping[str, GivenArgument],
    names: list[str],
    path: Path,
    report: Report,
) -> None:
    """Check that the tasks of a plugin exist."""
    for flag in plugin.tasks:
        given = arguments.get(flag)
        default = plugin.needs.get(flag) or plugin.uses.get(flag)
        task = given.value if given else default
        if task is None or task in names:
            continue
        hint = report.hints.did_you_mean(task, names)
        if flag in plugin.needs:
            missing = NO_MASTER if flag == "master" else NO_WORKER
            at = given.path if given else path
            report.add(missing, at, f"--{flag}={task}", task=task, hint=hint)
        elif given:
            report.add(NO_TASK, given.path, f"--{flag}={task}", task=task, hint=hint)
        else:
            report.warn(NO_EFFECT, path, task=task, name=flag)
