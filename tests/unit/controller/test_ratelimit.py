"""Dear passes are made less often, cheap ones are not; nothing waits longer than it must."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_controller.memory import SETTLE_SECONDS
from hyperjob_controller.wake.handlers import LONGEST_REST, REST, PassRateLimit

KEY = "default/hj"


class Passes:
    """Passes that take a given time each, on a clock of their own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.takes = 0.0
        self.meanwhile: list[float] = []
        self.error: Exception | None = None
        self.rate_limit = PassRateLimit(self.reconcile, clock=lambda: self.now)

    async def reconcile(self, key: str) -> timedelta | None:
        self.meanwhile.append(self.rate_limit.settle_seconds(key))
        self.now += self.takes
        if self.error is not None:
            raise self.error
        return timedelta(seconds=9)

    async def one(self, takes: float) -> float:
        """Make a pass; give how long a change right after it waits."""
        self.takes = takes
        assert await self.rate_limit.reconcile(KEY) == timedelta(seconds=9)
        return self.rate_limit.settle_seconds(KEY)


@pytest.mark.parametrize(
    ("takes", "rest"),
    [(0.0, SETTLE_SECONDS), (0.01, SETTLE_SECONDS), (0.1, 0.1 * REST), (5.0, LONGEST_REST)],
)
async def test_a_hyperjob_rests_as_its_last_pass_was_dear(takes: float, rest: float) -> None:
    passes = Passes()
    assert passes.rate_limit.settle_seconds(KEY) == SETTLE_SECONDS
    assert await passes.one(takes) == pytest.approx(rest)
    assert passes.rate_limit.settle_seconds("default/other") == SETTLE_SECONDS
    passes.now += rest
    assert passes.rate_limit.settle_seconds(KEY) == SETTLE_SECONDS, (
        "after a rest a change is told soon"
    )


async def test_what_changes_during_a_dear_pass_rests_too() -> None:
    passes = Passes()
    await passes.one(0.1)
    await passes.one(0.1)
    assert passes.meanwhile == [SETTLE_SECONDS, pytest.approx(0.1 + 0.1 * REST)]
    await passes.one(0.001)
    await passes.one(0.001)
    assert passes.meanwhile[-1] == SETTLE_SECONDS, "one cheap pass, and it rests no more"


async def test_a_pass_that_fails_counts_like_any_other() -> None:
    passes = Passes()
    passes.error, passes.takes = ValueError("no"), 0.1
    with pytest.raises(ValueError, match="no"):
        await passes.rate_limit.reconcile(KEY)
    assert passes.rate_limit.settle_seconds(KEY) == pytest.approx(0.1 * REST)


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3)), max_size=20))
async def test_no_change_waits_longer_than_the_longest_rest(
    steps: list[tuple[float, float]],
) -> None:
    passes = Passes()
    for takes, idle in steps:
        assert SETTLE_SECONDS <= await passes.one(takes) <= LONGEST_REST + 1e-9
        passes.now += idle
