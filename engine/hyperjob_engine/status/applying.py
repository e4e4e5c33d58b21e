"""The reason and the message of a vcjob that Karmada could not apply in its cluster."""

import re
from typing import Final

from hyperjob_engine.model.reasons import Reason

_DENIAL: Final = re.compile(r'admission webhook "([^"]+)" denied the request: (.*)')


def apply_failure(cluster: str, error: str) -> tuple[Reason, str]:
    """Return the reason and the message: the cluster refused the vcjob, or was not reached."""
    denial = _DENIAL.search(" ".join(error.split()))
    if denial is None:
        return Reason.APPLY_FAILED, error
    text = f"cluster {cluster} refuses it: admission webhook {denial[1]} says: {denial[2]}"
    return Reason.REFUSED_BY_CLUSTER, text
