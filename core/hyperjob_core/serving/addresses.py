"""The addresses at which processes listen, as their settings have them."""

import ipaddress


def parse_address(address: str) -> tuple[str | None, int] | None:
    """Parse `host:port`, `:port` or `[v6]:port`; None for "0" and "", a disabled endpoint."""
    if address in ("", "0"):
        return None
    host, colon, port = address.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError(f"{address!r} is not an address: give host:port, :port, or 0 for none")
    if host.startswith("[") and host.endswith("]"):
        host = str(ipaddress.IPv6Address(host[1:-1]))
    elif ":" in host:
        raise ValueError(f"{address!r}: write an IPv6 address in brackets, [::1]:8080")
    return (host or None), int(port)


def listen_address(text: str) -> str:
    """Return the text of a setting that `parse_address` takes; ValueError for another one."""
    parse_address(text)
    return text
