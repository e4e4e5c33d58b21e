"""What Karmada says where it could not apply a vcjob in its cluster, in a reason and its words."""

import re
from typing import Final

from controller.model.reasons import Reason

_DENIAL: Final = re.compile(r'admission webhook "([^"]+)" denied the request: (.*)')


def apply_failure(cluster: str, error: str) -> tuple[Reason, str]:
    """Give why Karmada could not apply a vcjob in its cluster: refused there, or not reached."""
    denial = _DENIAL.search(" ".join(error.split()))
    if denial is None:
        return Reason.APPLY_FAILED, error
    text = f"cluster {cluster} refuses it: admission webhook {denial[1]} says: {denial[2]}"
    return Reason.REFUSED_BY_CLUSTER, text
