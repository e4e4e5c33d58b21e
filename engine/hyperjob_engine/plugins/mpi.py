"""The plugin mpi: the launcher gets the hosts of all sub-jobs.

Volcano's plugin of that name gives the launcher only the hosts of its own vcjob. The user provides
the SSH keys, because Volcano's plugin ssh generates others for each vcjob.
"""

from collections.abc import Sequence

from hyperjob_core.api.meta import Object
from hyperjob_core.api.plugins import MPI_MASTER, MPI_WORKER
from hyperjob_engine.plugins.world import PluginContext, TaskPods, variable


class Mpi:
    """The plugin mpi, which gives the launcher the list of hosts."""

    def variables(
        self, place: PluginContext, task_pods: TaskPods, container: Object
    ) -> Sequence[Object]:
        """Return MPI_HOST for the launcher task; raises UnknownHostError."""
        launcher = place.world.first(place.arguments.get("master") or MPI_MASTER)
        if launcher != (place.sub_job, task_pods):
            return ()
        worker = place.arguments.get("worker") or MPI_WORKER
        hosts = [
            place.host(sub_job, other, index)
            for sub_job in place.world.sub_jobs
            for other in sub_job.tasks
            if other.task == worker
            for index in range(other.pods)
        ]
        found = [variable("MPI_HOST", ",".join(hosts))]
        if "port" in place.arguments:
            port = place.number("port", 22)
            found.append(variable("OMPI_MCA_plm_rsh_args", f"-p {port}"))
        return found
