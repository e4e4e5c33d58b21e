"""An external splitter, as an example: `python examples/splitter.py 8090`, then `--splitter-url`.

It fills preferred clusters first, then those with the most room. It needs the standard library
alone, and has neither TLS nor a token: put a proxy with both before it.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LONGEST = 8 * 1024 * 1024


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the SplitResponse to a SplitRequest."""
    fixed, per_pod, left = (
        asked[each] for each in ("fixedAccelerators", "acceleratorsPerPod", "accelerators")
    )
    used, shares = set(asked["clustersInUse"]), []
    most = asked.get("maxDomains", len(used) + len(asked["clusters"]))
    for cluster in sorted(
        asked["clusters"],
        key=lambda each: (each["name"] not in asked["clusterNames"], -each["mostPods"]),
    ):
        name, pods = cluster["name"], min(cluster["mostPods"], (left - fixed) // per_pod)
        if pods > 0 and len(used | {name}) <= most:
            used.add(name)
            shares.append({"cluster": name, "accelerators": fixed + pods * per_pod})
            left -= fixed + pods * per_pod
    if left:
        return {"shares": [], "reason": f"{left} {asked['acceleratorType']} find no room"}
    return {"shares": shares}


class Splitter(BaseHTTPRequestHandler):
    """Answers POST."""

    timeout = 10

    def do_POST(self) -> None:
        """Read a SplitRequest, and answer it."""
        try:
            size = min(int(self.headers["Content-Length"]), LONGEST)
            asked = json.loads(self.rfile.read(size))  # noqa: TID251 - RecursionError is caught
            body = json.dumps(answer(asked)).encode()
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            self.send_error(400, explain=repr(error))
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Splitter) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()
