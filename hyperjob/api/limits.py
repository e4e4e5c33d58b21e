"""How large a HyperJob may be: far beyond any real one, and small enough to count in memory."""

from typing import Final

MAX_SUB_JOBS: Final = 5_000
"""Sub-jobs of all replicatedJobs together."""
MAX_PODS: Final = 200_000
"""Pods of all sub-jobs together."""
