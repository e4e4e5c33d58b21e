"""HyperJob from Python: write a training function, run it locally or on many clusters, follow it.

    from hyperjob.sdk import Client

    with Client.local(clusters=2) as client:      # or Client() with the kubeconfig of kubectl
        job = client.train(train, args={"epochs": 3}, clusters=2, replicas=4)
        for line in job.logs(follow=True):
            print(line.cluster, line.pod, line.text)
        job.wait("Completed")

`AsyncClient` and `AsyncJob` are the same for asyncio. `trainer` only returns the HyperJob, for
`submit` or `kubectl apply`.
"""

from hyperjob.client.summary import Summary
from hyperjob.sdk.aio import AsyncClient
from hyperjob.sdk.errors import (
    HyperJobError,
    HyperJobWarning,
    InvalidError,
    NeverReachedError,
    NotFoundError,
    NotReachedError,
    SourceError,
    UnreachableError,
)
from hyperjob.sdk.job import AsyncJob, LogLine
from hyperjob.sdk.progress import progress
from hyperjob.sdk.sync import Client, Job
from hyperjob.sdk.training import trainer
from hyperjob_core.api.status import ExpectedStart, JobStatus

__all__ = [
    "AsyncClient",
    "AsyncJob",
    "Client",
    "ExpectedStart",
    "HyperJobError",
    "HyperJobWarning",
    "InvalidError",
    "Job",
    "JobStatus",
    "LogLine",
    "NeverReachedError",
    "NotFoundError",
    "NotReachedError",
    "SourceError",
    "Summary",
    "UnreachableError",
    "progress",
    "trainer",
]
