"""The kind scripts, run with stand-ins for docker, kind, kubectl, Helm and the network."""

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "e2e/kind"

# Each notes how it was called, and answers what is there from what was made.
STAND_IN = """\
#!/bin/bash
name=${0##*/}
line="${name%%-v*} $*"
made() { grep -q "$1" "$STATE/calls"; }
case $line in
"${FAIL:-nothing}"*) echo "failed: $line" >>"$STATE/calls"; echo "told to fail" >&2; exit 1 ;;
esac
echo "$line" >>"$STATE/calls"
case $line in
"kind get clusters") sed -n 's/^kind create cluster --name \\([^ ]*\\).*/\\1/p' "$STATE/calls" ;;
"docker inspect "*.Gateway*) echo 172.18.0.1 ;;
"docker inspect "*) echo 172.18.0.9 ;;
"docker image inspect "*) echo "sha256:$(grep -c '^docker build' "$STATE/calls")" ;;
*" get nodes "*) printf 'node/one\\nnode/two\\n' ;;
*" get deployment "*) made '^karmadactl init' ;;
*" get cluster "*) made "^karmadactl join ${line##* } " ;;
"helm status "*) made '^helm upgrade' && ! made '^helm uninstall' ;;
*" get secret "*) echo kubeconfig ;;
*" create secret "*) echo "secret of $(cat "$OUT/volcano-global/karmada.config")" ;;
"karmadactl init "*)
    mkdir -p "$OUT/karmada"
    echo karmada >"$OUT/karmada/karmada-apiserver.config" ;;
"curl "*)
    while [ $# -gt 1 ]; do [ "$1" = --output ] && file=$2; shift; done
    if [ -e "$STATE/${file##*/}" ]; then cp "$STATE/${file##*/}" "$file"
    else echo "image: volcanosh/volcano-global-$(basename "$file" .yaml):latest" >"$file"; fi ;;
esac
"""


class Machine:
    """A machine on which every tool is a stand-in."""

    def __init__(self, directory: Path) -> None:
        self.state, self.out, self.bin = (directory / name for name in ("state", "out", "bin"))
        for each in (self.state, self.bin):
            each.mkdir(parents=True)
        for name in ("docker", "kind", "kubectl", "helm", "curl", "make"):
            self._stand_in(self.bin / name)
        self._stand_in(self.state / "karmadactl")
        for name in ("karmadactl-linux-amd64.tgz", "karmadactl-linux-arm64.tgz"):
            with tarfile.open(self.state / name, "w:gz") as archive:
                archive.add(self.state / "karmadactl", "karmadactl")
            digest = hashlib.sha256((self.state / name).read_bytes()).hexdigest()
            (self.state / f"{name}.sha256").write_text(f"{digest}  {name}\n")

    @staticmethod
    def _stand_in(path: Path) -> None:
        path.write_text(STAND_IN)
        path.chmod(0o755)

    def run(self, script: str, **settings: str) -> tuple[int, str, list[str]]:
        """Run a script; returns its exit code, its output and the calls that it made."""
        log = self.state / "calls"
        before = len(log.read_text().splitlines()) if log.exists() else 0
        log.touch()
        done = subprocess.run(
            ["/bin/bash", FOLDER / script],
            env={
                "PATH": f"{self.bin}:{os.defpath}",
                "STATE": str(self.state),
                "OUT": str(self.out),
                **settings,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, log.read_text().splitlines()[before:]
