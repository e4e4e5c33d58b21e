#!/bin/sh
# Build the plugin of kubectl for this machine: release/plugin.sh BIN DIST
# BIN has the Python with PyInstaller; DIST gets kubectl-hyperjob-OS-ARCH.tar.gz.
set -eu
bin=$1
dist=$2
cd "$(dirname "$0")/.."
platform=$("$bin"/python -c 'import platform, sys
machines = {"x86_64": "amd64", "aarch64": "arm64"}
print(sys.platform, machines.get(platform.machine(), platform.machine()), sep="-")')
rooms="hyperjob hyperjob_page hyperjob_core hyperjob_engine hyperjob_queueing hyperjob_rules hyperjob_install hyperjob_webhook hyperjob_controller
    hyperjob_certs hyperjob_trainjobs"
set -- --noconfirm --onedir --name kubectl-hyperjob --distpath build/plugin --workpath build/plugin-work \
    --specpath build/plugin-work --log-level WARN --copy-metadata hyperjob
for room in $rooms; do
    set -- "$@" --collect-submodules "$room" --collect-data "$room"
done
"$bin"/python -m PyInstaller "$@" release/plugin.py
cp LICENSE build/plugin/kubectl-hyperjob
# What is packed must run where there is no Python, and has the data of the wheel.
built=build/plugin/kubectl-hyperjob/kubectl-hyperjob
env -i HOME=/nonexistent "$PWD/$built" --version
env -i HOME=/nonexistent "$PWD/$built" lint examples/llm-training.yaml
mkdir -p "$dist"
COPYFILE_DISABLE=1 tar -czf "$dist/kubectl-hyperjob-$platform.tar.gz" -C build/plugin/kubectl-hyperjob .
ls -l "$dist/kubectl-hyperjob-$platform.tar.gz"
