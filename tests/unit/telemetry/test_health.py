"""What the checks behind /readyz may say: well, well with a remark, not well."""

from hyperjob_core.telemetry.endpoints import Checks, Remark


def report(check):
    checks = Checks("readyz")
    checks.add("certificate", check)
    return checks.report()


def test_a_remark_is_said_and_sends_nobody_away():
    said = report(lambda: Remark("the new one cannot be served"))
    assert said.passed
    assert said.text(verbose=False) == "ok"
    assert "[+]certificate ok: the new one cannot be served\n" in said.text(verbose=True)
    assert said.text(verbose=True).endswith("readyz check passed\n")
