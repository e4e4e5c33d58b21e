"""The command line: `hyperjob` and, under kubectl, `kubectl hyperjob`.

A command's module is imported when the command runs: `hyperjob --help` imports none of them.
"""

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import click
from click.shell_completion import CompletionItem

from hyperjob import __version__
from hyperjob.cli.kubectl.terminal import ended_in_one_way, escaped, written
from hyperjob_core.garbage import collect_rarely
from hyperjob_core.text import nearest

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Look at HyperJobs": {
        "get": "List HyperJobs, or watch them change.",
        "tree": "Show sub-jobs, their clusters and pods.",
        "why": "Explain why a HyperJob is not running, and what to do.",
        "logs": "Print logs of a HyperJob's pods, from all clusters.",
        "exec": "Run a command in a pod of a HyperJob.",
        "port-forward": "Forward local ports to a pod of a HyperJob.",
        "top": "Show accelerators by cluster and by queue.",
        "wait": "Wait for a phase, a condition or deletion.",
    },
    "Use a browser": {
        "ui": "Show clusters, queues and HyperJobs in the browser.",
    },
    "Change running HyperJobs": {
        "suspend": "Remove a HyperJob's sub-jobs from the clusters.",
        "resume": "Resume a suspended HyperJob.",
        "restart": "Restart a HyperJob, or some of its sub-jobs.",
        "migrate": "Move sub-jobs to other clusters.",
    },
    "Write and test HyperJobs": {
        "run": "Submit a Python script or a module as a HyperJob.",
        "plan": "Show on which clusters HyperJobs would run, and why.",
        "simulate": "Simulate a workload on clusters, queues and policies.",
        "lint": "Validate HyperJob files without an API server.",
        "convert": "Print the HyperJobs of vcjobs and other jobs.",
        "demo": "Watch HyperJobs run across simulated clusters.",
        "sandbox": "Run HyperJob on an embedded Karmada, on this machine.",
    },
    "Run the platform": {
        "install": "Create HyperJob's objects in the Karmada API server.",
        "preflight": "Check the requirements of HyperJobs in Karmada.",
        "after-restore": "Compare the members with a Karmada put back from a backup.",
        "usage": "Show accelerator hours by queue and use, from Prometheus.",
        "queue": "Close and open a Queue in all clusters.",
        "credentials": "Renew the tokens of the controller and the webhook.",
        "uninstall": "Delete the objects that `hyperjob install` created.",
    },
    "Set up the shell": {
        "completion": "Print the completion script for bash, zsh or fish.",
    },
}
"""The commands and their one-line help."""
_MODULES: Mapping[str, str] = {
    **dict.fromkeys(("exec", "port-forward"), "hyperjob.cli.pod"),
    **dict.fromkeys(("suspend", "resume", "restart", "migrate"), "hyperjob.cli.change"),
    "uninstall": "hyperjob.cli.install",
    **{name: f"hyperjob_sandbox_cli.{name}" for name in ("simulate", "demo", "sandbox")},
}
"""The modules of commands that do not have the name of their command."""
_HELP = ["-h", "--help"]
_PLUGIN = "kubectl-hyperjob"
_COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}


_ELSEWHERE: Mapping[str, str] = {
    "annotate": "kubectl annotate hj NAME",
    "apply": "kubectl apply -f FILE",
    "cancel": "hyperjob suspend NAME, or kubectl delete hj NAME",
    "create": "kubectl apply -f FILE",
    "delete": "kubectl delete hj NAME",
    "describe": "kubectl describe hj NAME, or hyperjob tree NAME",
    "edit": "kubectl edit hj NAME",
    "events": "kubectl describe hj NAME",
    "explain": "hyperjob why NAME, or kubectl explain hj",
    "list": "hyperjob get",
    "ls": "hyperjob get",
    "ps": "hyperjob get",
    "show": "kubectl describe hj NAME",
    "status": "hyperjob get, or hyperjob why NAME",
    "stop": "hyperjob suspend NAME, or kubectl delete hj NAME",
    "submit": "kubectl apply -f FILE",
    "validate": "hyperjob lint FILE",
    "version": "hyperjob --version",
}
"""Verbs of kubectl and other tools, and the command that does the same for HyperJobs."""


_CONNECTION = frozenset({"-n", "--namespace", "--context", "--kubeconfig"})
"""Options of commands that kubectl takes before the command too."""


def _hint(word: str) -> str:
    if word in _ELSEWHERE:
        return f"; use: {_ELSEWHERE[word]}"
    near = nearest(word, _COMMANDS)
    return f"; did you mean {near!r}?" if near else ""


def _module_of(command: str) -> ModuleType:
    """Import the module of a command; some commands are in the distribution hyperjob-sandbox."""
    name = _MODULES.get(command, f"hyperjob.cli.{command.replace('-', '_')}")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        from hyperjob.client.errors import NO_SANDBOX

        raise click.UsageError(NO_SANDBOX) from None


class _LazyGroup(click.Group):
    """A group that knows its commands' names and one-line help without importing them."""

    def main(self, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - as click declares it
        collect_rarely()
        with escaped():
            return super().main(*args, **more)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's own settings
    ) -> click.Context:
        name = "kubectl hyperjob" if info_name == _PLUGIN else info_name
        with written(), ended_in_one_way():
            return super().make_context(name, args, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move options of the connection behind the command, which has them."""
        first, rest = list[str](), args
        while rest and rest[0].partition("=")[0] in _CONNECTION:
            count = 1 if "=" in rest[0] else 2
            first, rest = first + rest[:count], rest[count:]
        return super().parse_args(ctx, [*rest[:1], *first, *rest[1:]])

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click declares it
        with written(), ended_in_one_way():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(_module_of(cmd_name), cmd_name.replace("-", "_"))
        command.context_settings.setdefault("help_option_names", _HELP)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in _COMMANDS and not word.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {word!r}{_hint(word)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for name, text in _COMMANDS.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])


@click.command(cls=_LazyGroup, context_settings={"help_option_names": _HELP})
@click.version_option(__version__, prog_name="hyperjob")
def main() -> None:
    """Run one training job across many Kubernetes clusters."""
