"""Run a command of HyperJob as in a container: `python -m tests.support.container ROOT COMMAND…`.

The files of a container are below ROOT. The path of the service account is fixed in the client:
this program sets it to a path below ROOT.
"""

import sys
from importlib.metadata import entry_points
from pathlib import Path

from hyperjob_core.kube import config


def main() -> None:
    root, command = Path(sys.argv[1]), sys.argv[2]
    account = root / "var/run/secrets/kubernetes.io/serviceaccount"
    if account.exists():
        config.ACCOUNT = account
    (entry,) = entry_points(group="console_scripts", name=command)
    sys.argv = [command, *sys.argv[3:]]
    sys.exit(entry.load()())


if __name__ == "__main__":
    main()
