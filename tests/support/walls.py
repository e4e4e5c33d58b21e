"""A wall for tests in which no exception is expected: each one ends the test's task."""

from hyperjob_controller.wall import Wall
from hyperjob_core.api.meta import Object
from hyperjob_core.telemetry.metrics import Metrics
from tests.unit.controller.builders import NOW


class Unexpected(Wall):
    """Raises what it would catch."""

    def failed(self, place: object, error: BaseException) -> None:
        raise error

    def caught(self, key: str, error: BaseException, place: object) -> object:  # type: ignore[override]  # it never returns
        raise error


def unexpected(error: BaseException) -> None:
    raise error


def no_wall() -> Wall:
    def nothing(_: str) -> Object | None:
        return None

    return Unexpected(nothing, metrics=Metrics(), now=lambda: NOW, wake=lambda _: None)
