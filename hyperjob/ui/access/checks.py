"""Whether a request may be looked at: its Host, its Origin, where it was made. Pure.

A page of another site must neither read ours (DNS rebinding: its own name then leads to our
address, so Host names it) nor act through a visitor's browser (Origin and Sec-Fetch-Site name it).
"""

from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
"""They change nothing."""


def refused(method: str, headers: Mapping[str, str], hosts: Collection[str]) -> str:
    """Say why a request is refused; empty when it may be looked at.

    `hosts` are names, or names with a port, under which visitors reach the page; a name alone is
    allowed with every port.
    """
    host = headers.get("Host", "")
    if not is_known(host, hosts):
        return "the page is not served under this host name"
    origin = headers.get("Origin")
    if origin is not None and origin != "null" and is_known(_netloc(origin), {host, *hosts}):
        return ""
    site = headers.get("Sec-Fetch-Site", "none")
    if method in SAFE_METHODS:
        # A page of another site may lead here, and nothing else of it may.
        if site in ("none", "same-origin") or headers.get("Sec-Fetch-Mode") == "navigate":
            return ""
        return "a page of another site asks"
    # A browser that hides where it comes from still says that it is no other site.
    if site == "same-origin" and origin == "null":
        return ""
    if origin is not None or site not in ("none", "same-origin"):
        return "the request comes from another site"
    return ""


def is_known(host: str, hosts: Collection[str]) -> bool:
    """Return whether a Host header (`name`, `name:port`, `[::1]:port`) is among those allowed."""
    whole = host.lower()
    return bool(whole) and (whole in hosts or _name(whole) in hosts)


def is_navigation(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a browser opens a page, so that an answer in HTML is of use."""
    mode = headers.get("Sec-Fetch-Mode")
    if mode is not None:
        return method in SAFE_METHODS and mode == "navigate"
    return method in SAFE_METHODS and "text/html" in headers.get("Accept", "")


def came_by_a_link(headers: Mapping[str, str]) -> bool:
    """Return whether another site led here: then a browser withholds our SameSite=Strict cookie."""
    return headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and (
        headers.get("Sec-Fetch-Mode") == "navigate"
    )


def local_path(given: str) -> str:
    """Return a path within this page to go on to; `/` for anything that could lead elsewhere."""
    if not given.startswith("/") or given.startswith(("//", "/\\")) or not given.isprintable():
        return "/"
    return given


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _name(host: str) -> str:
    """Cut the port off."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
