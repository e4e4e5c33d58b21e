"""Runs one of our commands as a container would: `python -m tests.support.container ROOT COMMAND…`.

What a container sees under fixed paths is below ROOT here; the one path that is not ours to choose
is the service account's, so the client is told where it is.
"""

import importlib
import sys
from importlib.metadata import entry_points
from pathlib import Path


def main() -> None:
    root, command = Path(sys.argv[1]), sys.argv[2]
    account = root / "var/run/secrets/kubernetes.io/serviceaccount"
    if account.exists():
        # The package has a function of the module's name.
        incluster = importlib.import_module("kubernetes.aio.config.incluster_config")
        incluster.SERVICE_TOKEN_FILENAME = str(account / "token")
        incluster.SERVICE_CERT_FILENAME = str(account / "ca.crt")
    (entry,) = entry_points(group="console_scripts", name=command)
    sys.argv = [command, *sys.argv[3:]]
    sys.exit(entry.load()())


if __name__ == "__main__":
    main()
