"""Real torchrun fails: the HyperJob says which rank failed first, why, and with which exit code."""

from collections.abc import Iterator

import pytest

from hyperjob.sdk import Client
from hyperjob.sdk.errors import NeverReachedError

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(1200)]


def train(how: str) -> None:
    import os
    import signal
    import time

    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    value = torch.zeros(1)
    for step in range(100):
        if dist.get_rank() == 2 and step == 3:
            if how == "raise":
                raise ValueError("a batch has no labels")
            if how == "exit":
                os._exit(3)
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(value)
        time.sleep(0.05)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Give two clusters with a place for two processes each."""
    with Client.local(clusters=2, gpus=2) as opened:
        yield opened


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            "raise",
            "(rank 2), container trainer: exit code 1, Error: ValueError: a batch has no labels",
        ),
        ("exit", "(rank 2), container trainer: exit code 3, Error: rank 2 failed first"),
        ("kill", "(rank 2), container trainer: exit code 137 (SIGKILL"),
    ],
)
def test_the_failing_rank_its_exception_and_its_exit_code_are_said(
    client: Client, how: str, said: str
) -> None:
    job = client.train(
        train,
        args={"how": how},
        name=how,
        clusters=2,
        replicas=2,
        gpus=2,
        framework="torchrun",
        image="pytorch",
        env={"OMP_NUM_THREADS": "1"},
    )
    with pytest.raises(NeverReachedError) as raised:
        job.wait("Completed", timeout=300)
    assert said in str(raised.value)
    assert said in job.status.message
    job.delete()
