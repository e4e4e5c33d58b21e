"""The line and the numbers that each request leaves behind."""

import asyncio
import io
import json
import logging
from pathlib import Path

import orjson
import pytest

from hyperjob_core.telemetry.logs import JsonFormatter
from hyperjob_core.telemetry.metrics import Metrics
from hyperjob_rules.configuration import MUTATE_HYPERJOB, MUTATE_RESOURCEBINDING, VALIDATE_HYPERJOB
from hyperjob_webhook.admission import Reply, admit, refuse
from hyperjob_webhook.decisionlog import BATCH_BYTES, DecisionLog
from hyperjob_webhook.requestlog import RequestLog

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
    RequestLog(Metrics()).done(MUTATE_HYPERJOB, admit(MUTATE_HYPERJOB, REVIEW), 0.0012345678)
    level, line = said(caplog)
    assert level == "INFO"
    assert line["HyperJob"] == {"namespace": "default", "name": "llm-training"}
    assert (line["operation"], line["user"]) == ("CREATE", "system:admin")
    assert (line["allowed"], line["duration"]) == (True, 0.001235)
    assert line["requestID"] == "cfaa5fae-d355-4477-99b5-91f1eecc63b3"
    assert line["patched"] > 0
    assert "dryRun" not in line


def test_a_refusal_says_the_first_reason_and_how_many_there_are(caplog):
    RequestLog(Metrics()).done(VALIDATE_HYPERJOB, refused(), 0.001)
    _, line = said(caplog)
    assert line["allowed"] is False
    assert line["errors"] == 1
    assert line["reason"].startswith("spec.minAvailable: Invalid value: 1000")
    assert line["dryRun"] is True


def test_what_is_no_review_is_a_warning(caplog):
    RequestLog(Metrics()).done("unknown", refuse(404, "no webhook here"), 0.001)
    level, line = said(caplog)
    assert level == "WARNING"
    assert (line["code"], line["reason"]) == (404, "no webhook here")


def test_a_bug_is_an_error_with_its_trace(caplog):
    request = admit(VALIDATE_HYPERJOB, REVIEW).request
    bug = Reply(500, b"", request, problem="failed", bug=RuntimeError("boom"))
    RequestLog(Metrics()).done(VALIDATE_HYPERJOB, bug, 0.001)
    level, line = said(caplog)
    assert level == "ERROR"
    assert "RuntimeError: boom" in line["stacktrace"]
    assert line["HyperJob"]["name"] == "llm-training"


def test_requests_are_counted_by_webhook_and_status():
    metrics = Metrics()
    report = RequestLog(metrics)
    for code in (200, 200, 400):
        report.started(VALIDATE_HYPERJOB)
        report.done(VALIDATE_HYPERJOB, refuse(code, "x"), 0.002)
    report.started(VALIDATE_HYPERJOB)

    def value(name, **labels):
        return metrics.registry.get_sample_value(
            f"controller_runtime_webhook_{name}", {"webhook": VALIDATE_HYPERJOB, **labels}
        )

    assert value("requests_total", code="200") == 2
    assert value("requests_total", code="400") == 1
    assert value("latency_seconds_count") == 3
    assert value("requests_in_flight") == 1


def test_nothing_is_logged_above_info(caplog):
    caplog.set_level(logging.WARNING, logger="hyperjob_webhook")
    sink = io.BytesIO()
    report = RequestLog(Metrics(), admitted=DecisionLog(sink))
    report.done(MUTATE_HYPERJOB, admit(MUTATE_HYPERJOB, REVIEW), 0.001)
    assert not caplog.records
    assert not sink.getvalue()


async def test_the_fast_way_prints_the_line_that_the_formatter_prints(caplog):
    reply = admit(MUTATE_HYPERJOB, REVIEW)
    sink = io.BytesIO()
    log = DecisionLog(sink)
    RequestLog(Metrics(), admitted=log).done(MUTATE_HYPERJOB, reply, 0.0012)
    assert not caplog.records
    log.flush()
    RequestLog(Metrics()).done(MUTATE_HYPERJOB, reply, 0.0012)
    fast, usual = orjson.loads(sink.getvalue()), said(caplog)[1]
    assert fast.keys() == usual.keys()
    assert len(fast.pop("ts")) == len(usual.pop("ts"))
    assert fast == usual


async def test_a_refusal_never_goes_the_fast_way(caplog):
    sink = io.BytesIO()
    log = DecisionLog(sink)
    RequestLog(Metrics(), admitted=log).done(VALIDATE_HYPERJOB, refused(), 0.001)
    log.flush()
    assert not sink.getvalue()
    assert len(caplog.records) == 1


class Stream:
    def __init__(self):
        self.batches = asyncio.Queue()

    def write(self, data):
        self.batches.put_nowait(data)

    def flush(self):
        pass


async def test_lines_are_written_together_and_soon():
    stream = Stream()
    log = DecisionLog(stream, clock=lambda: 1_800_000_000.1239)
    for number in range(3):
        log.write("m", {"n": number})
    assert stream.batches.empty()
    async with asyncio.timeout(20):
        batch = await stream.batches.get()
    lines = [orjson.loads(line) for line in batch.splitlines()]
    assert [line["n"] for line in lines] == [0, 1, 2]
    assert lines[0]["ts"] == "2027-01-15T08:00:00.123Z"
    assert stream.batches.empty()


async def test_a_full_batch_is_written_at_once():
    stream = Stream()
    log = DecisionLog(stream)
    log.write("m", {"text": "x" * BATCH_BYTES})
    assert len(stream.batches.get_nowait()) > BATCH_BYTES


async def test_a_closed_stream_stops_nobody():
    stream = io.BytesIO()
    log = DecisionLog(stream)
    log.write("m", {})
    stream.close()
    log.flush()
    log.write("m", {})
    log.flush()


@pytest.mark.parametrize("path", [MUTATE_RESOURCEBINDING, VALIDATE_HYPERJOB])
def test_a_review_that_cannot_be_read_is_reported_without_an_object(path, caplog):
    RequestLog(Metrics()).done(path, admit(path, b"{"), 0.001)
    _, line = said(caplog)
    assert line["code"] == 400
    assert "user" not in line


async def test_a_batch_that_is_just_full_waits_for_its_time():
    stream, measure = Stream(), Stream()
    log = DecisionLog(measure)
    log.write("m", {"text": ""})
    log.flush()
    rest = BATCH_BYTES - len(measure.batches.get_nowait())
    log = DecisionLog(stream)
    log.write("m", {"text": "x" * rest})
    assert stream.batches.empty()
    log.write("m", {})
    assert not stream.batches.empty()


@pytest.mark.parametrize("reply", [refuse(404, "none"), refused()], ids=["no review", "refusal"])
async def test_what_waits_in_a_batch_is_written_before_a_line_of_another_kind(reply, caplog):
    stream = Stream()
    report = RequestLog(Metrics(), admitted=DecisionLog(stream))
    report.done(MUTATE_HYPERJOB, admit(MUTATE_HYPERJOB, REVIEW), 0.001)
    assert stream.batches.empty()
    report.done(VALIDATE_HYPERJOB, reply, 0.001)
    assert b"admission decision" in stream.batches.get_nowait()
    assert len(caplog.records) == 1


def test_the_line_of_a_request_that_got_no_decision_has_its_time_and_its_webhook(caplog):
    RequestLog(Metrics()).done("unknown", refuse(404, "none"), 0.0012345678)
    _, line = said(caplog)
    assert (line["webhook"], line["duration"]) == ("unknown", 0.001235)


def test_a_decision_without_warnings_or_patch_does_not_count_them(caplog):
    review = json.loads(REVIEW)
    review["request"]["operation"] = "DELETE"
    RequestLog(Metrics()).done(VALIDATE_HYPERJOB, admit(VALIDATE_HYPERJOB, orjson.dumps(review)), 0)
    _, line = said(caplog)
    assert not {"patched", "warnings", "errors", "reason", "dryRun"} & line.keys()


async def test_a_line_is_written_once():
    stream = Stream()
    log = DecisionLog(stream)
    for number in range(2):
        log.write("m", {"n": number})
        log.flush()
        assert orjson.loads(stream.batches.get_nowait())["n"] == number
    log.flush()
    assert stream.batches.empty()
