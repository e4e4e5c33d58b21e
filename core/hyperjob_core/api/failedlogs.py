"""The ConfigMap that keeps the logs of a HyperJob's failed attempts: its name, keys and bounds.

The first line of a value says in JSON whose log it is, the other lines are the end of that log.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.api.wire import count, decoded, mapping, string
from hyperjob_core.text import printable

MOST_BYTES: Final = 128 * 1024
"""The greatest number of bytes of one log."""
TOTAL_BYTES: Final = 512 * 1024
"""The bytes of all logs of a HyperJob; the API server refuses a ConfigMap above 1 MiB."""
_SUFFIX: Final = "-failed-logs"
_NO_DIGIT: Final = re.compile(r"\D")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedLog:
    """The end of the log of a container that failed; `attempt` counts from 1."""

    job: str
    attempt: int
    cluster: str
    pod: str
    container: str
    time: str = ""
    text: str = ""

    def entry(self, limit: int) -> tuple[str, str]:
        """Return the key and the value, with at most the last `limit` bytes of the log.

        The same failure has the same key; the keys of later failures are greater.
        """
        about = {
            "job": self.job,
            "attempt": self.attempt,
            "cluster": self.cluster,
            "pod": self.pod,
            "container": self.container,
        }
        head = orjson.dumps(about).decode()
        digest = hashlib.blake2b(f"{head} {self.time}".encode(), digest_size=6).hexdigest()
        end = printable(self.text).encode()[-limit:].decode(errors="ignore")
        return f"{_NO_DIGIT.sub('', self.time)}.{digest}", f"{head}\n{end}"


def config_map_name(hyperjob: str) -> str:
    """Return the name of the ConfigMap of a HyperJob."""
    return f"{hyperjob}{_SUFFIX}"


def config_map(hyperjob: str, owner: Object, data: Mapping[str, str]) -> Object:
    """Return the ConfigMap, which the garbage collector deletes with its HyperJob."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": config_map_name(hyperjob),
            "labels": {LABEL_HYPERJOB: hyperjob},
            "ownerReferences": [owner],
        },
        "data": dict(data),
    }


def change(stored: Mapping[str, str], key: str, value: str) -> dict[str, str | None]:
    """Return the merge patch of `data` that stores a log under a key.

    It removes the oldest logs, those of the least keys, for which TOTAL_BYTES has no room.
    """
    room = TOTAL_BYTES - len(value.encode())
    changed: dict[str, str | None] = {key: value}
    for name in sorted(stored.keys() - {key}, reverse=True):
        room -= len(stored[name].encode())
        if room < 0:
            changed[name] = None
    return changed


def read_logs(found: Object) -> list[FailedLog]:
    """Return the logs of a ConfigMap, the earliest first; values of another form are left out."""
    logs = []
    for key, value in sorted(mapping(found.get("data")).items()):
        head, _, text = string(value).partition("\n")
        try:
            about = mapping(decoded(head))
        except ValueError:
            continue
        logs.append(
            FailedLog(
                job=string(about.get("job")),
                attempt=count(about.get("attempt")),
                cluster=string(about.get("cluster")),
                pod=string(about.get("pod")),
                container=string(about.get("container")),
                time=key.partition(".")[0],
                text=text,
            )
        )
    return logs
