#!/bin/sh
# Print the path of a promtool for the tests of the alerts: the one that HYPERJOB_PROMTOOL names, or one on PATH, or
# that of Debian's package prometheus, which is unpacked into the folder $1 (build/promtool) and not installed.
set -eu
folder=${1:-build/promtool}
if [ -n "${HYPERJOB_PROMTOOL:-}" ]; then
    echo "$HYPERJOB_PROMTOOL"
    exit
fi
if command -v promtool; then
    exit
fi
found="$folder/usr/bin/promtool"
if [ ! -x "$found" ] && command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
    mkdir -p "$folder"
    (
        cd "$folder"
        apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }
        dpkg-deb --extract prometheus_*.deb .
        rm prometheus_*.deb
    ) >&2 || true
fi
if [ -x "$found" ]; then
    realpath "$found"
    exit
fi
echo "There is no promtool here: install Prometheus, or name the executable in HYPERJOB_PROMTOOL." >&2
exit 1
