"""The logs of a process: one line for each record, as JSON or as text.

Messages are constant; variable values are in `extra`, objects as `{"namespace", "name"}` under
their kind. The formatters redact credentials, also in exceptions, and escape control characters.
"""

import logging
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, TextIO

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_core.text import printable

Format = Literal["json", "text"]

_context: ContextVar[Mapping[str, object]] = ContextVar("fields", default=MappingProxyType({}))

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SECRET_NAME = re.compile(r"(?i)(token|password|secret|authorization|private_?key)")
_SECRET_TEXT = re.compile(
    r"(?i)\bbearer\s+[\w.~+/=-]{20,}"
    r"|\bauthorization\W+(basic|bearer)\s+\S+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)",
    re.DOTALL,
)
_HIDDEN = "<hidden>"
_JSON_INTEGER = 2**53
_PLAIN = re.compile(r"[^\s\"'=\\]+")
_QUIET = ("aiohttp.access", "asyncio", "kubernetes")


def setup(*, format: Format = "text", level: str = "info", stream: TextIO | None = None) -> None:  # noqa: A002
    """Send every logger of the process to one stream (stderr), and remove earlier handlers.

    `level` is a name such as `debug` or `INFO`; raises ValueError for an unknown level.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    root.setLevel(level.upper())
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(capture=True)


@contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Add fields to all records of this task and of tasks it starts, within the block."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


def ref(obj: Object) -> dict[str, str]:
    """Return the reference to an object for a log record."""
    metadata = obj.get("metadata") or {}
    fields = {"namespace": metadata.get("namespace"), "name": metadata.get("name")}
    return {name: str(value) for name, value in fields.items() if value}


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: level, ts, logger, msg, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, object] = {
            "level": record.levelname.lower(),
            "ts": _moment(record),
            "logger": record.name,
            "msg": _hide(record.getMessage()),
            **_record_fields(record),
        }
        if trace := _trace(record):
            line["stacktrace"] = trace
        return printable(orjson.dumps(line).decode())


class TextFormatter(logging.Formatter):
    """Formats `2026-01-02T03:04:05.678Z INFO logger message key=value`, then a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        message = _hide(record.getMessage()).replace("\n", "\\n")
        parts = [_moment(record), f"{record.levelname:<7}", record.name, message]
        parts += [f"{name}={_value_text(value)}" for name, value in _record_fields(record).items()]
        line = " ".join(parts)
        if trace := _trace(record):
            line += "\n" + trace.rstrip()
        return printable(line)


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment.isoformat(timespec='milliseconds')[:-6]}Z"


def _record_fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields of `bound` and of a record's `extra`, without credentials."""
    fields = {name: _redacted(name, value) for name, value in _context.get().items()}
    for name, value in vars(record).items():
        if name not in _STANDARD:
            fields[name] = _redacted(name, value)
    return fields


def _redacted(name: str, value: object) -> object:
    """Return a JSON value with redacted secrets, found by field name or by form."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < _JSON_INTEGER else str(value)
    if not isinstance(value, str):
        if isinstance(value, Mapping):
            return {str(key): _redacted(str(key), part) for key, part in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [_redacted(name, part) for part in value]
    return _HIDDEN if _is_secret(name) else _hide(str(value))


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def _value_text(value: object) -> str:
    if isinstance(value, Mapping) and set(value) <= {"namespace", "name"}:
        return "/".join(str(value[part]) for part in ("namespace", "name") if part in value)
    text = orjson.dumps(value).decode() if isinstance(value, dict | list) else str(value)
    return text if _PLAIN.fullmatch(text) else orjson.dumps(text).decode()


def _trace(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[0] is None:
        return ""
    return _hide("".join(traceback.format_exception(*record.exc_info)))


def _hide(line: str) -> str:
    """Return a text with credentials of a known form replaced."""
    # Each pattern begins with one of these words; searching for the words is twenty times faster.
    lowered = line.lower()
    if "bearer" in lowered or "authorization" in lowered or "private key" in lowered:
        return _SECRET_TEXT.sub(_HIDDEN, line)
    return line
