"""The tests of the SDK report progress in the process of the tests."""

import threading
from collections.abc import Iterator

import pytest

from hyperjob.sdk import progress


@pytest.fixture(autouse=True)
def _no_samples_after_a_test() -> Iterator[None]:
    """End the reports of a test: the samples of the watchdog take memory that other tests count."""
    yield
    if any(each.name == "hyperjob-watchdog" for each in threading.enumerate()):
        progress(phase="end")
