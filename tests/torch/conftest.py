"""Nothing here is collected without torch, which is too large for the plain test environment."""

from importlib.util import find_spec

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]
