"""The plugin mpi: the launcher gets the hosts of all sub-jobs.

Volcano's plugin of that name gives it those of its own vcjob. Keys for SSH are the user's: those
that Volcano makes differ from one vcjob to the next.
"""

from collections.abc import Sequence

from controller.plugins.plugin import PluginContext
from controller.plugins.template import variable
from controller.plugins.world import TaskPods
from hyperjob.api.meta import Object
from hyperjob.api.plugins import MPI_MASTER, MPI_WORKER


class Mpi:
    """Gives the launcher its list of hosts."""

    def variables(
        self, place: PluginContext, task_pods: TaskPods, container: Object
    ) -> Sequence[Object]:
        """Return MPI_HOST for the one task that launches; raises UnknownHostError."""
        launcher = place.world.first(place.arguments.get("master") or MPI_MASTER)
        if launcher != (place.member, task_pods):
            return ()
        worker = place.arguments.get("worker") or MPI_WORKER
        hosts = [
            place.host(member, other, index)
            for member in place.world.members
            for other in member.tasks
            if other.task == worker
            for index in range(other.pods)
        ]
        found = [variable("MPI_HOST", ",".join(hosts))]
        if "port" in place.arguments:
            port = place.number("port", 22)
            found.append(variable("OMPI_MCA_plm_rsh_args", f"-p {port}"))
        return found
