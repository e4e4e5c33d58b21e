"""kubeconfigs of one cluster and one user."""

from pathlib import Path
from typing import Any

import yaml

NOBODY = "http://127.0.0.1:1"
"""The address of no API server."""


def write_kubeconfig(
    path: Path,
    server: str = NOBODY,
    *,
    user: dict[str, Any] | None = None,
    name: str = "test",
    **cluster: Any,
) -> Path:
    """Write a kubeconfig with the credentials of a user and further fields of the cluster."""
    fields = {key.replace("_", "-"): value for key, value in cluster.items()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, **fields}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": user or {}}],
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path
