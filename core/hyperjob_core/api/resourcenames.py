"""The kinds of resources by their names: native, extended, huge pages, quota-only.

The source of the rules is Kubernetes' `pkg/apis/core/helper` and `validation`.
"""

from typing import Final

COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""The native resources of containers, which may be overcommitted."""

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
    """Return whether the resource is native: its name has no domain, or that of Kubernetes."""
    return "/" not in name or "kubernetes.io/" in name


def is_huge_pages(name: str) -> bool:
    """Return whether the resource is memory in huge pages of one size."""
    return name.startswith(HUGE_PAGES)


def is_quota_only(name: str) -> bool:
    """Return whether the name is valid in a ResourceQuota only, not in a container."""
    return name in _QUOTA_ONLY or name.startswith("requests.hugepages-")


def is_unqualified(name: str) -> bool:
    """Return whether the name has no domain and is not native: an extended resource needs one."""
    return (
        "/" not in name
        and name not in COMPUTE
        and not is_huge_pages(name)
        and not is_quota_only(name)
    )


def may_be_overcommitted(name: str) -> bool:
    """Return whether a request may be below its limit, as for cpu but not for devices."""
    return is_native(name) and not is_huge_pages(name) and not is_unqualified(name)
