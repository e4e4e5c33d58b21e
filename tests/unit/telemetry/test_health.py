"""What the checks behind /readyz may say: well, well with a remark, not well."""

from hyperjob_core.telemetry.endpoints import Checks, Remark


def report(check, *, verbose=True):
    checks = Checks("readyz")
    checks.add("certificate", check)
    return checks.report(verbose=verbose)


def test_a_remark_is_said_and_sends_nobody_away():
    remark = Remark("the new one cannot be served")
    assert report(lambda: remark, verbose=False) == (True, "ok")
    passed, text = report(lambda: remark)
    assert passed
    assert "[+]certificate ok: the new one cannot be served\n" in text
    assert text.endswith("readyz check passed\n")


def test_a_reason_fails_the_whole():
    passed, text = report(lambda: "expired", verbose=False)
    assert not passed
    assert "[-]certificate failed: expired\n" in text
