"""A local installation starts although other processes take its ports."""

import socket

import pytest

from hyperjob.sdk import Client
from hyperjob_sandbox.local import plane

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(180)]


def test_ports_that_are_taken_meanwhile_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[list[int]] = []
    ports = plane._free_ports

    def lately_taken(count: int) -> list[int]:
        chosen.append(ports(count))
        if len(chosen) == 1:
            chosen[0][0] = chosen[0][3] = taken.getsockname()[1]  # of the webhook, the controller
        return chosen[-1]

    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(plane, "_free_ports", lately_taken)
        with Client.local() as client:
            assert client.list() == []
    assert len(chosen) > 1
