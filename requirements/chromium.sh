#!/bin/sh
# Print the path of a Chromium for the tests of the web page: the one that HYPERJOB_CHROMIUM names, or one on PATH, or
# Debian's, which root installs here. Playwright's own download is never used: it comes from no package registry.
set -eu
if [ -n "${HYPERJOB_CHROMIUM:-}" ]; then
    echo "$HYPERJOB_CHROMIUM"
    exit
fi
found() {
    for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" && return
    done
    return 1
}
if found; then
    exit
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq >&2
    # Where there is no package of the headless shell alone, the whole browser has it.
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        chromium-headless-shell fonts-dejavu-core >&2 ||
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >&2
    found && exit
fi
echo "There is no Chromium here: install the package chromium-headless-shell, chromium or google-chrome of this" \
    "system, or name the executable in HYPERJOB_CHROMIUM." >&2
exit 1
