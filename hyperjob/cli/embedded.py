"""The one door from the commands to the embedded control plane, a distribution of its own.

`hyperjob[sandbox]` brings it. Import this module inside a command that needs it: where the
distribution is absent, the import ends the command with the way to install it.
"""

from hyperjob.cli.kubectl.exits import Code, FailureError

try:
    from hyperjob_sandbox.clusters import SandboxConfig, SandboxConfigError, changed, load
    from hyperjob_sandbox.karmada.clusterstatus import idle_clusters
    from hyperjob_sandbox.topology import Topology
except ModuleNotFoundError as error:
    if error.name != "hyperjob_sandbox":
        raise
    raise FailureError(
        "the embedded control plane is not installed; install it with:"
        " pip install 'hyperjob[sandbox]'",
        code=Code.USAGE,
    ) from None

__all__ = ["SandboxConfig", "SandboxConfigError", "Topology", "changed", "idle_clusters", "load"]
