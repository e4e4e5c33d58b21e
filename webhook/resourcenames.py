"""What the name of a resource says about it: who defines it, and how it may be requested.

Only about names; amounts are compared elsewhere.
"""

from typing import Final

COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""What Kubernetes itself hands out to containers, and what may be overcommitted."""

HUGE_PAGES: Final = "hugepages-"

_QUOTA_ONLY: Final = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
        "storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    }
)


def is_native(name: str) -> bool:
    """Return whether Kubernetes defines the resource: without a domain, or with its own."""
    return "/" not in name or "kubernetes.io/" in name


def is_huge_pages(name: str) -> bool:
    """Return whether the resource is memory in huge pages of one size."""
    return name.startswith(HUGE_PAGES)


def is_quota_only(name: str) -> bool:
    """Return whether the name means something in a ResourceQuota and nothing in a container."""
    return name in _QUOTA_ONLY or name.startswith("requests.hugepages-")


def is_unqualified(name: str) -> bool:
    """Return whether the name looks like a device's without the domain that it needs."""
    return (
        "/" not in name
        and name not in COMPUTE
        and not is_huge_pages(name)
        and not is_quota_only(name)
    )


def may_be_overcommitted(name: str) -> bool:
    """Return whether a request may be below its limit, as for cpu; devices come whole."""
    return is_native(name) and not is_huge_pages(name) and not is_unqualified(name)
