"""All recorded sections by the name of their file."""

from functools import partial
from typing import Final

from controller.model.observed import QueueAdmission
from tests.unit.recorded.passes import pass_cases
from tests.unit.recorded.recording import Section
from tests.unit.recorded.whole import whole_cases

MODES: Final = list(QueueAdmission)

SECTIONS: Final[dict[str, Section]] = {
    **{f"passes-{n}": partial(pass_cases, n * 14, n * 14 + 14) for n in range(7)},
    **{
        f"whole-{n}": partial(
            whole_cases, n, jobs=4, refuses=0.03 if n % 2 else 0.0, mode=MODES[(n + 1) % 3]
        )
        for n in range(6)
    },
}
