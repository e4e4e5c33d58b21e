"""Which labels and annotations of other systems a user may give to sub-jobs.

Karmada and Volcano act on the labels and annotations of the objects that they manage, and some of
them lift what a HyperJob's gate, policy and queue hold: the resource is kept in the members, or a
member's own object is overwritten. Of their domains only those are taken that do no such thing.
"""

from typing import Final

_DOMAINS: Final = ("karmada.io", "volcano.sh")

ALLOWED: Final = frozenset(
    f"volcano.sh/{name}"
    for name in (
        "cooldown-time",
        "jdb-max-unavailable",
        "jdb-min-available",
        "network-topology-highest-tier",
        "network-topology-mode",
        "preemptable",
        "qos-level",
        "revocable-zone",
        "sla-waiting-time",
        "task-topology-affinity",
        "task-topology-anti-affinity",
        "task-topology-task-order",
    )
)
"""Settings of one vcjob that Volcano documents for its scheduler's plugins."""


def domain_of(key: str) -> str:
    """Return `karmada.io` or `volcano.sh` for a key of theirs or below; empty for all others."""
    prefix, slash, _ = key.partition("/")
    if not slash:
        return ""
    return next((d for d in _DOMAINS if prefix == d or prefix.endswith(f".{d}")), "")


def may_be_given(key: str) -> bool:
    """Return whether a user may give a label or annotation of this key to sub-jobs."""
    return not domain_of(key) or key in ALLOWED
