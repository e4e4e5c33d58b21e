"""What is decided about a HyperJob's sub-jobs before anything is done about them.

The controller writes a decision into the status first, and a later pass carries it out. If it dies
in between, it neither forgets the decision nor carries it out twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.model.child import Child
from controller.model.observed import GangRecord
from controller.model.outcomes import AgainCause, EndCause
from controller.model.reasons import Reason
from controller.model.subjobs import SubJob

Member = tuple[SubJob, Child]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreation:
    """A sub-job that is made again, and why.

    `leave` is the cluster that it must not come back to.
    """

    name: str
    reason: Reason
    cause: AgainCause
    leave: str = ""
    delayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Sub-jobs that are made again, how many restarts that spends, and the requests it answers.

    `gives_back`: the share of their queue is given back, and asked for again; not before the time
    of `gang`, where there is one.
    """

    again: tuple[Recreation, ...] = ()
    spent: int = 0
    gives_back: bool = False
    gang: GangRecord | None = None
    handled: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of the HyperJob; without a cause it is that of its sub-jobs, which all ended."""

    completed: bool
    reason: str = ""
    cause: EndCause | None = None
