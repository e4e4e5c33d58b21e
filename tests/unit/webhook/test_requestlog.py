"""The line and the numbers that each request leaves behind."""

import json
import logging
from pathlib import Path

import orjson
import pytest
from prometheus_client import CollectorRegistry, Histogram

from hyperjob_core.telemetry.logs import JsonFormatter
from hyperjob_rules.configuration import VALIDATE_HYPERJOB
from hyperjob_webhook.admission import Reply, admit, refuse
from hyperjob_webhook.server import RequestLog
from tests.support.counts import value

REVIEW = next(
    line
    for line in (Path(__file__).parent / "data/admission-reviews.jsonl").read_bytes().splitlines()
    if b'"name":"llm-training"' in line and b'"CREATE"' in line
)


def refused():
    review = json.loads(REVIEW)
    review["request"]["object"]["spec"]["minAvailable"] = 1000
    review["request"]["dryRun"] = True
    return admit(VALIDATE_HYPERJOB, orjson.dumps(review))


@pytest.fixture(autouse=True)
def at_info(caplog):
    caplog.set_level(logging.INFO, logger="hyperjob_webhook")


def said(caplog):
    (record,) = caplog.records
    return record.levelname, orjson.loads(JsonFormatter().format(record))


def test_a_decision_names_user_object_operation_outcome_and_time(caplog):
    RequestLog().done(VALIDATE_HYPERJOB, admit(VALIDATE_HYPERJOB, REVIEW), 0.0012345678)
    level, line = said(caplog)
    assert level == "INFO"
    assert line["HyperJob"] == {"namespace": "default", "name": "llm-training"}
    assert (line["operation"], line["user"]) == ("CREATE", "system:admin")
    assert (line["allowed"], line["duration"]) == (True, 0.001235)
    assert line["requestID"] == "cfaa5fae-d355-4477-99b5-91f1eecc63b3"
    assert "dryRun" not in line


def test_a_refusal_says_the_first_reason_and_how_many_there_are(caplog):
    RequestLog().done(VALIDATE_HYPERJOB, refused(), 0.001)
    _, line = said(caplog)
    assert line["allowed"] is False
    assert line["errors"] == 1
    assert line["reason"].startswith("spec.minAvailable: Invalid value: 1000")
    assert line["dryRun"] is True


def test_what_is_no_review_is_a_warning(caplog):
    RequestLog().done("unknown", refuse(404, "no webhook here"), 0.0012345678)
    level, line = said(caplog)
    assert level == "WARNING"
    assert (line["code"], line["reason"]) == (404, "no webhook here")
    assert (line["webhook"], line["duration"]) == ("unknown", 0.001235)


def test_a_bug_is_an_error_with_its_trace(caplog):
    request = admit(VALIDATE_HYPERJOB, REVIEW).request
    bug = Reply(500, b"", request, problem="failed", bug=RuntimeError("boom"))
    RequestLog().done(VALIDATE_HYPERJOB, bug, 0.001)
    level, line = said(caplog)
    assert level == "ERROR"
    assert "RuntimeError: boom" in line["stacktrace"]
    assert line["HyperJob"]["name"] == "llm-training"


def test_requests_are_counted_by_webhook_and_status():
    report = RequestLog()
    for code in (200, 200, 400):
        report.started(VALIDATE_HYPERJOB)
        report.done(VALIDATE_HYPERJOB, refuse(code, "x"), 0.002)
    report.started(VALIDATE_HYPERJOB)

    def counted(name, **labels):
        name = f"controller_runtime_webhook_{name}"
        return value(report, name, webhook=VALIDATE_HYPERJOB, **labels)

    assert counted("requests_total", code="200") == 2
    assert counted("requests_total", code="400") == 1
    assert counted("latency_seconds_count") == 3
    assert counted("requests_in_flight") == 1


def test_latencies_are_counted_as_the_prometheus_client_counts_them():
    name, report, theirs = (
        "controller_runtime_webhook_latency_seconds",
        RequestLog(),
        CollectorRegistry(),
    )
    bounds = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
    histogram = Histogram(name, "", ["webhook"], buckets=bounds, registry=theirs)
    for seconds in (0.0, 0.001, 0.3, 10.0, 11.0):
        histogram.labels(VALIDATE_HYPERJOB).observe(seconds)
        report.started(VALIDATE_HYPERJOB)
        report.done(VALIDATE_HYPERJOB, refuse(400, "x"), seconds)
    for sample in next(iter(theirs.collect())).samples:
        assert value(report, sample.name, **sample.labels) == sample.value
