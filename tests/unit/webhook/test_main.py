"""What readiness says of the certificate that the webhook serves."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from webhook.__main__ import _certificate

END = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
EXPIRED = "the served certificate expired at 2026-01-02T03:04:00+00:00"


@pytest.mark.parametrize(
    ("expired", "problem", "said"),
    [
        (False, "", None),
        (False, "no key", "still serving the old one, because no key"),
        (True, "", EXPIRED),
        (True, "no key", f"{EXPIRED}; no key"),
    ],
)
def test_a_certificate_is_no_trouble_until_no_caller_takes_it(expired, problem, said):
    facts = SimpleNamespace(not_after=END)
    found = _certificate(SimpleNamespace(expired=expired, problem=problem, facts=facts))
    assert (found if found is None else str(found)) == said
