"""Record the demo as a picture: run it, ask it as a user would, and draw the terminal as SVG.

    python docs/images/demo.py docs/images/demo.svg

Every line of the picture was printed by the commands in it.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
EXAMPLES = ("llm-training.yaml", "queue.yaml")
COMMANDS = (
    "kubectl hyperjob get",
    "kubectl hyperjob tree llm-training",
    "kubectl hyperjob why tuning-b",
    "kubectl hyperjob top --by cluster",
)
COLUMNS = 118
_SECONDS = 120
_WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def printed(command: str, environment: dict[str, str]) -> str:
    """Run a command on a terminal of its own and give what it prints, colours included."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        ["/bin/sh", "-c", f"stty cols {COLUMNS} rows 50; {command}"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment | {"TERM": "xterm-256color"},
    ):
        os.close(follower)
        found = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the terminal is gone once its last process has ended
                break
            if not part:
                break
            found += part
    os.close(leader)
    return found.decode().replace("\r\n", "\n").rstrip()


def waits(environment: dict[str, str]) -> bool:
    """Report whether both states that the picture is about are reached."""
    table = subprocess.run(
        ["kubectl", "hyperjob", "get", "--no-headers"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    phases = {line.split()[0]: line.split()[1] for line in table.splitlines()}
    return (phases.get("llm-training"), phases.get("tuning-b")) == ("Running", "Queued")


def main(path: Path) -> None:
    """Run the demo and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | {
            "PATH": programs,
            "KUBECONFIG": f"{folder}/karmada.kubeconfig",
        }
        files = [word for name in EXAMPLES for word in ("-f", str(ROOT / "examples" / name))]
        demo = subprocess.Popen(
            ["hyperjob", "demo", "--directory", folder, "--speed", "0.2", *files],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + _SECONDS
            while not waits(environment):
                if demo.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the demo did not reach the states of the picture")
                time.sleep(0.5)
            console = Console(record=True, width=COLUMNS, file=Path(os.devnull).open("w"))  # noqa: SIM115
            for position, command in enumerate(COMMANDS):
                if position:
                    console.print()
                console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
                console.print(Text.from_ansi(printed(command, environment)))
        finally:
            demo.terminate()
            demo.wait()
    picture = console.export_svg(title="hyperjob demo", unique_id="hyperjob")
    path.write_text(_WEB_FONT.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
