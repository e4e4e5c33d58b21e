"""The reference of the command line: `python -m docs.generators.cli FILE` makes it."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import yaml

from docs.generators.markdown import row, table
from docs.generators.rights import RIGHTS, Right
from hyperjob.cli import GROUPS, main
from hyperjob.cli.kubectl.exits import MEANINGS
from hyperjob_core.kube.resources import HYPERJOBS

_WIDTH = 96
_HEAD = """<!-- Made by `python -m docs.generators.cli docs/reference/cli.md`. -->

# The command line

`hyperjob COMMAND` and `kubectl hyperjob COMMAND` are the same program. Commands on HyperJobs
accept kubectl's own flags (`--kubeconfig`, `--context`, `-n`, `-A`, `-l`, `-o`),
after the name of the plugin; the default namespace is that of the
kubeconfig's context. Name a HyperJob as `llm`, `hj/llm`, or as `kubectl get hj -o name` prints it.
Commands print colours on a terminal only, and no colours with `NO_COLOR` set. With `-o json`
standard output carries only JSON; remarks and errors go to standard error.
"""
_COMPLETION = """## Completion

`source <(hyperjob completion bash)` (or zsh, fish) completes `hyperjob`. kubectl's own completion
completes `kubectl hyperjob` by running the program `kubectl_complete-hyperjob`, which is installed
beside `kubectl-hyperjob`; both must be on PATH.
"""
_RIGHTS = """## Rights

The table lists the rights in the Karmada API server that a user of each command needs. Rights
marked with \\* are optional: without them the command works and names the objects that it could
not read. `clusters/proxy` gives access to members: Karmada impersonates the user there, who needs
`list` on `pods` and `get` on `pods/log` in each member; with `list` on `podgroups` there, `why`
also prints Volcano's reasons for pods that do not start. `install`, `uninstall` and
`preflight` need the rights of an administrator ([install](../install.md)); the other commands make
no request.
"""
_ROLES = """
Two ClusterRoles have the least rights with which a user submits and inspects HyperJobs. Bind the
first one in each namespace of the user, and the second one for the whole Karmada API server:

```console
$ kubectl create rolebinding ann --clusterrole=hyperjob-user --user=ann --namespace=team-a
$ kubectl create clusterrolebinding ann --clusterrole=hyperjob-user-cluster --user=ann
```

They have no right to read objects of other namespaces, and none to read Secrets. `plan` then does
not count what HyperJobs of other namespaces hold and does not look for the Secrets of the pods, and
prints what it has left out; `top` counts the HyperJobs of one namespace. Give `list` on the
resources of `plan` in all namespaces to users who may know the whole fleet. `hyperjob-user` in a
namespace lets its user run pods with the Secrets of that namespace, as `create pods` does
([security](../security.md)).
"""


def render() -> str:
    """Return the whole page as Markdown."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    yield _HEAD
    yield "## Exit codes\n"
    yield from table("code", "meaning")
    yield from (row(str(int(code)), meaning) for code, meaning in MEANINGS.items())
    yield ""
    for title, commands in GROUPS.items():
        yield f"## {title}\n"
        for name in commands:
            context = main.make_context("hyperjob", [name, "--help"], resilient_parsing=True)
            command = main.get_command(context, name)
            if command is not None:
                yield from _command(command, context, name, level=3)
    yield _COMPLETION
    yield _RIGHTS
    yield from table("command", "resource", "verbs", "when")
    yield from (_right(name, right) for name in RIGHTS for right in RIGHTS[name])
    yield _ROLES
    yield f"```yaml\n{yaml.safe_dump_all(user_roles(), sort_keys=False)}```\n"


def _command(
    command: click.Command, parent: click.Context, name: str, *, level: int
) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=_WIDTH)
    yield f"{'#' * level} {context.command_path.removeprefix('hyperjob ')}\n"
    if isinstance(command, click.Group):
        yield f"{command.get_short_help_str(_WIDTH)}\n"
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            if found is not None:
                yield from _command(found, context, sub, level=level + 1)
        return
    yield f"```text\n{command.get_help(context)}\n```\n"


def _right(name: str, right: Right) -> str:
    star = "\\*" if right.optional else ""
    return row(f"`{name}`", f"`{right.title}`{star}", ", ".join(right.verbs), right.when)


def user_roles() -> list[dict[str, object]]:
    """Return the ClusterRoles of a user: for a namespace, and for what is in no namespace."""
    own = [right for rights in RIGHTS.values() for right in rights if not right.shared]
    submit = Right(group=HYPERJOBS.group, resource=HYPERJOBS.plural, verbs=("create", "delete"))
    at_home = [right for right in own if right.namespaced and not right.name]
    wide = [right for right in own if not right.namespaced or right.name]
    return [role("hyperjob-user", [submit, *at_home]), role("hyperjob-user-cluster", wide)]


def role(name: str, rights: Iterable[Right]) -> dict[str, object]:
    """Return a ClusterRole with these rights."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for right in rights:
        known = verbs.setdefault((right.group, right.resource, right.name), [])
        known += [verb for verb in right.verbs if verb not in known]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {
                "apiGroups": [group],
                "resources": [resource],
                **({"resourceNames": [only]} if only else {}),
                "verbs": found,
            }
            for (group, resource, only), found in verbs.items()
        ],
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
