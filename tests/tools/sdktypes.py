"""The types that users of the SDK see: `make lint` has mypy check this file."""

from collections.abc import Iterator
from typing import assert_type

from hyperjob.client.summary import Summary
from hyperjob.client.why.evidence import Explanation
from hyperjob.sdk import Client, Job, LogLine


def results(client: Client, job: Job) -> None:
    """Use the results of all kinds of methods."""
    assert_type(client.get("llm", namespace="ml"), Job)
    assert_type(client.list(queue="research"), list[Job])
    assert_type(client.train("train.py", clusters=2, replicas=4), Job)
    assert_type(Client.local(clusters=2), Client)
    assert_type(job.wait("Running", timeout=60), Summary)
    assert_type(job.logs(follow=True), Iterator[LogLine])
    assert_type(job.restart("trainer-0", wait=False), Summary)
    assert_type(job.why(), Explanation)


def wrong_arguments(client: Client, job: Job) -> None:
    """Give arguments of wrong types and names; without an error, mypy refuses the comment."""
    client.train("train.py", replicas="four")  # type: ignore[arg-type]
    job.wait(state=1)  # type: ignore[arg-type]
    job.migrate(clusters="east")  # type: ignore[call-arg]
