"""One line a record, with the fields that find it again and without anything secret."""

import asyncio
import io
import json
import logging
import re

import pytest

from hyperjob_core.telemetry import logs


@pytest.fixture
def root():
    """Give the root logger back as it was."""
    logger = logging.getLogger()
    before = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:], level = before
    logger.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture
def written(root):
    """Set up logging and read what was written."""

    def start(**options):
        stream = io.StringIO()
        logs.setup(stream=stream, **options)
        return lambda: stream.getvalue().splitlines()

    return start


log = logging.getLogger("hyperjob_core.workers")


def fail(error):
    raise error


def test_json_lines_hold_time_level_logger_message_and_fields(written):
    lines = written(format="json")
    log.info("Reconciled", extra={"HyperJob": {"namespace": "ml", "name": "llm"}, "count": 2})
    (line,) = map(json.loads, lines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("ts"))
    assert line == {
        "level": "info",
        "logger": "hyperjob_core.workers",
        "msg": "Reconciled",
        "HyperJob": {"namespace": "ml", "name": "llm"},
        "count": 2,
    }


def test_text_lines_are_for_people(written):
    lines = written(format="text")
    log.warning("Not placed", extra={"HyperJob": {"namespace": "ml", "name": "llm"}, "why": "a b"})
    (line,) = lines()
    assert line.endswith('Z WARNING hyperjob_core.workers Not placed HyperJob=ml/llm why="a b"')


def test_bound_fields_are_on_every_record_of_the_task_and_gone_after_it(written):
    lines = written(format="json")

    async def reconcile(identity):
        with logs.bound(reconcileID=identity):
            with logs.bound(attempt=1):
                await asyncio.sleep(0)
                log.info("inner")
            log.info("outer", extra={"attempt": 7})

    async def main():
        await asyncio.gather(reconcile("a"), reconcile("b"))
        log.info("after")

    asyncio.run(main())
    seen = [json.loads(line) for line in lines()]
    fields = [(s["msg"], s.get("reconcileID"), s.get("attempt")) for s in seen]
    assert sorted(fields[:-1]) == [
        ("inner", "a", 1),
        ("inner", "b", 1),
        ("outer", "a", 7),
        ("outer", "b", 7),
    ]
    assert fields[-1] == ("after", None, None)


def test_a_trace_stays_on_its_json_line(written):
    lines = written(format="json")
    try:
        fail(LookupError("no such queue"))
    except LookupError:
        log.exception("Failed")
    (line,) = map(json.loads, lines())
    assert line["stacktrace"].startswith("Traceback")
    assert "LookupError: no such queue" in line["stacktrace"]


JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIA==\n-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize(
    ("extra", "message", "secret"),
    [
        ({"token": "hunter2"}, "x", "hunter2"),
        ({"clientPassword": "hunter2"}, "x", "hunter2"),
        ({"Authorization": "Basic aHVudGVyMg=="}, "x", "aHVudGVyMg"),
        ({"headers": {"Authorization": "Basic aHVudGVyMg=="}}, "x", "aHVudGVyMg"),
        ({"tokens": ["hunter2"]}, "x", "hunter2"),
        ({"error": LookupError("Authorization: Basic aHVudGVyMg==")}, "x", "aHVudGVyMg"),
        ({}, f"got Bearer {JWT} here", JWT),
        ({"error": f"bearer {JWT}"}, "x", JWT),
        ({}, f"read {KEY}", "MHcCAQEEIA"),
        ({"pem": KEY}, "x", "MHcCAQEEIA"),
    ],
)
def test_secrets_are_hidden(form, extra, message, secret, written):
    lines = written(format=form)
    log.info(message, extra=extra)
    text = "\n".join(lines())
    assert secret not in text
    assert "<hidden>" in text
    if form == "json":
        assert [json.loads(line) for line in lines()]


def test_secrets_in_a_trace_are_hidden(written):
    lines = written(format="json")
    try:
        fail(ValueError(f"header Authorization: Bearer {JWT}"))
    except ValueError:
        log.exception("Failed")
    assert JWT not in "".join(lines())


def test_words_about_credentials_are_no_credentials(written):
    lines = written(format="text")
    log.info("the bearer authentication of a basic authorization", extra={"token": None})
    assert lines()[0].endswith("the bearer authentication of a basic authorization token=None")


def test_a_reference_to_a_secret_is_no_secret(written):
    lines = written(format="text")
    log.info("x", extra={"Secret": {"namespace": "n", "name": "serving"}, "large": 2**70})
    assert lines()[0].endswith(f"x Secret=n/serving large={2**70}")
