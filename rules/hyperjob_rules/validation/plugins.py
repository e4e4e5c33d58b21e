"""Validation of a vcjob's plugins: names, arguments, and the tasks that arguments name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.plugins import (
    OFF,
    ON,
    PLACEHOLDERS,
    Flags,
    Kind,
    fill,
    is_octal,
    number_of,
    placeholders_of,
    read_arguments,
)
from hyperjob_core.text import did_you_mean
from hyperjob_rules.validation.forms import least_of, task_names
from hyperjob_rules.validation.rules import Report


class GivenArgument(NamedTuple):
    """One parsed argument, and its index."""

    value: str
    plugin: Path
    position: int

    @property
    def path(self) -> Path:
        """The path of the list item with the value."""
        return self.plugin.index(self.position)


def validate_arguments(
    plugin: str,
    given: Sequence[str],
    flags: Flags,
    path: Path,
    report: Report,
    *,
    of_volcano: bool = False,
) -> dict[str, GivenArgument]:
    """Validate the arguments of one plugin; return the parsed ones by name.

    Where Volcano reads the arguments, it accepts a wrong one and ignores those after it.
    """
    found: dict[str, GivenArgument] = {}
    if given and not flags:
        report.warn("V14.ignored", path, plugin=plugin)
        return found
    for item in read_arguments(given, flags):
        name, kind = item.name, flags.get(item.name)
        if not name or kind is None:
            wanted = name or item.text.lstrip("-").partition("=")[0]
            near = report.hints.did_you_mean(f"--{wanted}", [f"--{flag}" for flag in flags])
            at = path.index(item.named_at)
            if of_volcano:
                unread = "V14.unknown-argument" if name else "V14.not-a-flag"
                report.warn(unread, at, name=name, plugin=plugin, hint=near)
                return found
            if name:
                report.add(
                    "L14.unknown-argument", at, item.text, name=name, plugin=plugin, hint=near
                )
            else:
                report.add("L14.not-a-flag", at, item.text, hint=near)
        elif item.value is None:
            report.add("V14.no-value", path.index(item.named_at), item.text, name=name)
        else:
            argument = GivenArgument(item.value, path, item.value_at)
            if _validate_value(kind, argument, item.text, report):
                found[name] = argument
    return found


def _validate_value(kind: Kind, argument: GivenArgument, text: str, report: Report) -> bool:
    """Validate the value of one argument; return whether it is valid."""
    value, number = argument.value, number_of(argument.value)
    match kind:
        case Kind.SWITCH if value not in ON | OFF:
            report.add("V14.not-a-switch", argument.path, text)
        case Kind.NUMBER | Kind.PORT if number is None or is_octal(value):
            report.add("V14.not-a-number", argument.path, text)
        case Kind.PORT if not 1 <= (number or 0) <= 65535:
            report.add("V14.not-a-port", argument.path, text)
        case Kind.HOST if reason := _wrong_with_host(value):
            words = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            report.add("L14.not-a-host", argument.path, text, placeholders=words, reason=reason)
        case _:
            return True
    return False


def _wrong_with_host(pattern: str) -> str:
    """Return the error of a pattern of host names; empty if there is none."""
    unknown = [name for name in placeholders_of(pattern) if name not in PLACEHOLDERS]
    if unknown:
        return f"; there is no {{{unknown[0]}}}{did_you_mean(unknown[0], PLACEHOLDERS)}"
    messages = formats.dns1123_subdomain(fill(pattern, dict.fromkeys(PLACEHOLDERS, "x")))
    return f"; {messages[0]}" if messages else ""


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
    one_world: bool = False
    """Whether the program of each pod waits for all pods of the vcjob."""

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
        one_world=True,
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
        one_world=True,
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


def validate_plugins(spec: Object, path: Path, report: Report) -> None:
    """Check the plugins of one template, and their arguments against its tasks."""
    plugins, names = spec["plugins"], task_names(spec.get("tasks") or [])
    for name in sorted(plugins):
        at = path.child("plugins").key(name)
        plugin = PLUGINS.get(name)
        if plugin is None:
            report.unsupported("V14.unknown-plugin", at, name, tuple(PLUGINS))
            continue
        if plugin.one_world:
            warn_of_a_part(name, spec, path, report)
        if plugin.since:
            report.warn("X14.plugin-version", at, version=plugin.since)
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
            missing = "V2.no-master" if flag == "master" else "X12.no-worker"
            at = given.path if given else path
            report.add(missing, at, f"--{flag}={task}", task=task, hint=hint)
        elif given:
            report.add("X12.no-task", given.path, f"--{flag}={task}", task=task, hint=hint)
        else:
            report.warn("X12.no-effect", path, task=task, name=flag)


def warn_of_a_part(name: str, spec: Object, path: Path, report: Report) -> None:
    """Warn of a template that starts with a part of the pods for which a plugin waits."""
    tasks: list[Object] = spec.get("tasks") or []
    pods = sum(task.get("replicas") or 0 for task in tasks)
    least = spec.get("minAvailable") or sum(map(least_of, tasks))
    if least < pods:
        at = path.child("minAvailable")
        report.warn("L18.pods", at, name=name, least=least, pods=pods)
