"""A wall for tests in which no exception is expected, and CPU time that tests spend."""

from hyperjob_controller.wall import Wall
from hyperjob_controller.watchdog import Watchdog
from hyperjob_core.api.meta import Object
from hyperjob_core.telemetry.metrics import Metrics
from tests.unit.controller.builders import NOW


class Cpu:
    """The CPU time of the event loop's thread; the timer of a process rings while it is spent."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.watchdog: Watchdog | None = None

    def __call__(self) -> float:
        return self.seconds

    def timing(self) -> Watchdog:
        """Return a watchdog whose turns take the time that is spent."""
        self.watchdog = Watchdog(Metrics(), cpu=self)
        return self.watchdog

    def spend(self, seconds: float) -> None:
        for _ in range(round(seconds * 4)):
            self.seconds += 0.25
            if self.watchdog is not None:
                self.watchdog.ring()


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
