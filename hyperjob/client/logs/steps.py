"""Wait for a step in the logs: the controller reads them once an interval only."""

from contextlib import aclosing
from typing import Final

from hyperjob.client.errors import ClientError
from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.following import Following
from hyperjob.client.summary import Summary
from hyperjob_core.api.lines import LogLine
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_engine.model.training import parse

_TAIL: Final = 100


async def prints_step(kube: Kube, summary: Summary, step: int) -> bool:
    """Follow the logs until a program reports the step or a later one; return whether one did.

    A user who may not read logs waits for the status alone: no error is raised for them.
    """
    following = Following(kube, summary, Wanted(), tail=_TAIL, say=lambda _text: None)
    try:
        async with aclosing(following.lines()) as lines:
            async for _, raw in lines:
                line = parse(LogLine.of(raw))
                if line is not None and line.step >= step:
                    return True
    except (ClientError, KubeError):
        return False
    return False
