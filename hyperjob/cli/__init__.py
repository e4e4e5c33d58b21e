"""The command line: `hyperjob` and, under kubectl, `kubectl hyperjob`.

Commands are imported when they run, so that `hyperjob --help` costs nothing.
"""

import importlib
from collections.abc import Mapping

import click

from hyperjob import __version__

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("hyperjob.cli.demo", "Watch HyperJobs run across simulated clusters."),
    "install": ("hyperjob.cli.install", "Put what HyperJob needs into the Karmada API server."),
    "lint": ("hyperjob.cli.lint", "Check HyperJob files offline, as admission would."),
    "preflight": ("hyperjob.cli.install", "Say what HyperJobs still need, and what mends it."),
    "sandbox": ("hyperjob.cli.sandbox", "Run the embedded control plane on its own."),
    "uninstall": ("hyperjob.cli.install", "Take out what `hyperjob install` put in."),
}


class _LazyGroup(click.Group):
    """A group that knows its commands' names and one-line help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(importlib.import_module(_COMMANDS[cmd_name][0]), cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{_COMMANDS[cmd_name][0]}.{cmd_name} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hyperjob")
def main() -> None:
    """Run one training job across many Kubernetes clusters."""
