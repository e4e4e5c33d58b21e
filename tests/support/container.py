"""Run a command of HyperJob as in a container: `python -m tests.support.container ROOT COMMAND…`.

The files of a container are below ROOT. The path of the service account is fixed in the client:
this program sets it to a path below ROOT.
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
