"""Check Host, Origin and Sec-Fetch-Site of a request. Pure.

A page of another site must not read this page (after DNS rebinding, Host has the other site's
name), and must not act through a visitor's browser (Origin and Sec-Fetch-Site name the other site).
"""

from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
"""Methods that only read."""


def refused(method: str, headers: Mapping[str, str], hosts: Collection[str]) -> str:
    """Return why a request is refused; empty for an allowed request.

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
        # A link of another site may open the page; its scripts and forms may not.
        if site in ("none", "same-origin") or headers.get("Sec-Fetch-Mode") == "navigate":
            return ""
        return "the request comes from a page of another site"
    # A browser that sends no Origin still sends Sec-Fetch-Site, which excludes another site.
    if site == "same-origin" and origin == "null":
        return ""
    if origin is not None or site not in ("none", "same-origin"):
        return "the request comes from another site"
    return ""


def is_known(host: str, hosts: Collection[str]) -> bool:
    """Return whether a Host header (`name`, `name:port`, `[::1]:port`) is among those allowed."""
    whole = host.lower()
    return bool(whole) and (whole in hosts or _without_port(whole) in hosts)


def is_navigation(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a browser opens a page, and can show an answer in HTML."""
    mode = headers.get("Sec-Fetch-Mode")
    if mode is not None:
        return method in SAFE_METHODS and mode == "navigate"
    return method in SAFE_METHODS and "text/html" in headers.get("Accept", "")


def came_by_a_link(headers: Mapping[str, str]) -> bool:
    """Return whether a link of another site opened the page, without the SameSite=Strict cookie."""
    return headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and (
        headers.get("Sec-Fetch-Mode") == "navigate"
    )


def local_path(given: str) -> str:
    """Return `given` if it is a path on this server, else `/`, against open redirects."""
    if not given.startswith("/") or given.startswith(("//", "/\\")) or not given.isprintable():
        return "/"
    return given


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _without_port(host: str) -> str:
    """Return the host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
