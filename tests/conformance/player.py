"""Plays the recorded steps against an API server: kubectl commands and raw requests, normalised."""

import base64
import http.client
import json
import re
import ssl
import subprocess
import tempfile
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_TEXT = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "<time>"),
    (r'"resourceVersion": ?"\d+"', '"resourceVersion":"<rv>"'),
    (r'resourceVersion: "\d+"', 'resourceVersion: "<rv>"'),
    (r"(Resource Version: +)\d+", r"\g<1><rv>"),
    # The column is as wide as the age: the spaces behind it differ, too.
    (r"\b\d+(s|m|m\d+s|d)(?=\s|$)", "<age>"),
    (r"<age> +", "<age> "),
    (r"https://[0-9.a-z]+:\d+", "<server>"),
    (r'/[^\s"]*/(kubectl|LIVE|MERGED)[^\s"]*', "<file>"),
)
_OPAQUE = {
    "uid": "<uid>",
    "creationTimestamp": "<time>",
    "deletionTimestamp": "<time>",
    "continue": "<token>",
}


def transcript() -> Iterator[dict[str, Any]]:
    """Yield the steps: what to do, and what a real API server answered."""
    with (HERE / "transcript.jsonl").open() as file:
        yield from map(json.loads, file)


def normal_text(text: str) -> str:
    """Replace what differs from run to run; sort lines whose order is not promised."""
    for pattern, replacement in _TEXT:
        text = re.sub(pattern, replacement, text)
    lines = text.split("\n")
    # Several validation errors, and field managers of one second, come in any order.
    loose = [i for i, line in enumerate(lines) if line.startswith("* ") or " Apply {" in line]
    for position, line in zip(loose, sorted(lines[i] for i in loose), strict=True):
        lines[position] = line
    return "\n".join(lines)


def normal(value: Any) -> Any:
    """Replace what differs from run to run in an answer."""
    if isinstance(value, dict):
        return {
            key: _OPAQUE[key]
            if key in _OPAQUE and item
            else "<rv>"
            if key == "resourceVersion" and str(item).isdigit()
            else normal(item)
            for key, item in value.items()
            if key != "managedFields"
        }
    if isinstance(value, list):
        return [normal(item) for item in value]
    return normal_text(value) if isinstance(value, str) else value


class Player:
    """Plays steps in order, with one kubectl cache, and a new connection after each kubectl.

    An API server closes a connection that rests as long as kubectl takes on a busy machine.
    """

    def __init__(self, kubeconfig: Path, kubectl: Path, cache: Path) -> None:
        self._kubectl = [str(kubectl), "--kubeconfig", str(kubeconfig)]
        self._cache = cache
        self._saved: dict[str, str] = {}
        self._connection, self._headers = self._connect()

    def play(self, do: dict[str, Any]) -> dict[str, Any]:
        """Do one step and return its normalised answer."""
        return self._run(do) if "kubectl" in do else self._request(do)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _run(self, do: dict[str, Any]) -> dict[str, Any]:
        self._connection.close()
        arguments = [str(HERE / a) if a == "crd.yaml" else a for a in do["kubectl"]]
        done = subprocess.run(
            [*self._kubectl, "--cache-dir", str(self._cache), *arguments],
            input=do.get("stdin"),
            capture_output=True,
            text=True,
            timeout=60,
        )
        out, err = normal_text(done.stdout), normal_text(done.stderr)
        return {"exit": done.returncode, "out": out, "err": err}

    def _request(self, do: dict[str, Any]) -> dict[str, Any]:
        media = "application/json"
        headers = {"Content-Type": do.get("type", media), "Accept": do.get("accept", media)}
        body = json.dumps(do["body"]) if "body" in do else None
        path = do["path"].format(**self._saved)
        self._connection.request(do["method"], path, body, headers | self._headers)
        response = self._connection.getresponse()
        answer: dict[str, Any] = {"status": response.status}
        if warning := response.getheader("Warning"):
            answer["warning"] = normal_text(warning)
        if do.get("watch"):
            lines = [response.readline() for _ in range(do["watch"])]
            answer["events"] = [normal(json.loads(line)) for line in lines if line]
            self._connection.close()
            return answer
        data = response.read()
        try:
            decoded = json.loads(data)
        except ValueError:
            decoded = data.decode()
        if do.get("save"):
            meta = decoded["metadata"]
            self._saved = {"rv": meta["resourceVersion"], "token": meta.get("continue", "")}
        answer["body"] = normal(decoded)
        return answer

    def _connect(self) -> tuple[http.client.HTTPSConnection, dict[str, str]]:
        view = ["config", "view", "--raw", "--flatten", "--minify", "-o", "json"]
        done = subprocess.run([*self._kubectl, *view], capture_output=True, check=True, timeout=60)
        config = json.loads(done.stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile(suffix=".pem") as file:
                for part in ("client-certificate-data", "client-key-data"):
                    file.write(base64.b64decode(user[part]) + b"\n")
                file.flush()
                context.load_cert_chain(file.name)
        url = urllib.parse.urlparse(cluster["server"])
        assert url.hostname is not None
        headers = {"Authorization": "Bearer " + user["token"]} if user.get("token") else {}
        connection = http.client.HTTPSConnection(
            url.hostname, url.port, context=context, timeout=30
        )
        return connection, headers
