"""The frequency of Python's garbage collection, which only reference cycles need."""

import gc


def collect_rarely(objects: int = 20_000) -> None:
    """Collect reference cycles every `objects` new objects, instead of every 700.

    A review and a pass create thousands of short-lived values and hardly a cycle: at 700 the
    collector takes a tenth of the time of validation, a twentieth of the controller's CPU, and a
    sixth of that of `hyperjob plan`, most of it between imports.
    """
    gc.set_threshold(objects, 20, 20)
