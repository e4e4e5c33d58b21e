"""The labels and annotations of Karmada and Volcano that a user may give to sub-jobs.

Karmada and Volcano act on labels and annotations of their objects. Some of these bypass a
HyperJob's gate, policy or queue, keep objects in members, or overwrite a member's own object. Users
may set the keys with the prefix `volcano.sh/`, which are settings of one vcjob.
"""

from typing import Final

_DOMAINS: Final = ("karmada.io", "volcano.sh")
_OF_A_JOB: Final = "volcano.sh/"


def domain_of(key: str) -> str:
    """Return `karmada.io` or `volcano.sh` for a key in these domains; empty for other keys."""
    prefix, slash, _ = key.partition("/")
    if not slash:
        return ""
    return next((d for d in _DOMAINS if prefix == d or prefix.endswith(f".{d}")), "")


def may_be_given(key: str) -> bool:
    """Return whether a user may give a label or annotation of this key to sub-jobs."""
    return not domain_of(key) or key.startswith(_OF_A_JOB)
