"""The only module through which commands import the embedded control plane.

The control plane is a separate distribution, `hyperjob-sandbox`. Import this module inside a
command: without the distribution, the import ends the command with the way to install it.
"""

from pathlib import Path

from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.client.errors import NO_SANDBOX

try:
    from hyperjob_sandbox.clusters import SandboxConfig, SandboxConfigError, load
    from hyperjob_sandbox.karmada.clusterstatus import idle_clusters
    from hyperjob_sandbox.member.nodes import hypernodes_of, nodes_of, others_of
except ModuleNotFoundError as error:
    if error.name != "hyperjob_sandbox":
        raise
    raise FailureError(NO_SANDBOX, code=Code.USAGE) from None

__all__ = [
    "SandboxConfig",
    "clusters_file",
    "hypernodes_of",
    "idle_clusters",
    "nodes_of",
    "others_of",
]


def clusters_file(path: Path) -> SandboxConfig:
    """Read a clusters file; FailureError where it cannot be read or has a wrong field."""
    try:
        return load(path)
    except SandboxConfigError as error:
        raise FailureError(str(error), code=Code.USAGE) from None
