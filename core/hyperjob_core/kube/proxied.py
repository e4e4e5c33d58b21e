"""The API server of a member cluster, through Karmada's cluster proxy."""

from hyperjob_core.kube.resources import CLUSTERS


def proxied(cluster: str, path: str) -> str:
    """Return the path of Karmada's cluster proxy for a path in a member's API server."""
    return f"{CLUSTERS.path(None, cluster, 'proxy')}{path}"
