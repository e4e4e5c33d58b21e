"""A wall for tests in which no exception is expected, and CPU time that tests spend."""

from hyperjob_controller.wall import Wall
from hyperjob_controller.watchdog import Watchdog
from hyperjob_core.api.meta import Object
from tests.unit.engine.builders import NOW


class Cpu:
    """The CPU time of the event loop's thread; the timer of the process ticks while it is spent."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.watchdog = Watchdog(cpu=self)

    def __call__(self) -> float:
        return self.seconds

    def spend(self, seconds: float) -> None:
        for _ in range(round(seconds * 4)):
            self.seconds += 0.25
            self.watchdog.tick()


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

    return Unexpected(nothing, now=lambda: NOW, wake=lambda _: None)
