"""A bug of the controller about one HyperJob: the number of the incident and its sentence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InternalFault:
    """The controller failed at a HyperJob; its log has the stack under the number `incident`."""

    incident: str


def fault_text(fault: InternalFault) -> str:
    """Return the message of the status of a HyperJob that the controller has set aside."""
    return (
        f"the controller failed at this HyperJob (incident {fault.incident}) and tries again later;"
        " its log has the stack of the error, and sub-jobs in member clusters go on"
    )
