"""Find the files that ship with the package: CRDs and examples."""

from importlib.resources import files
from pathlib import Path


def data_file(name: str) -> Path:
    """Return the path of `crds/…` or `examples/…`, in the wheel or in a checkout.

    Raises FileNotFoundError when the file is in neither.
    """
    packaged = Path(str(files("hyperjob"))) / "_data" / name
    # An editable install resolves to the checkout, which has both folders at its root.
    checkout = Path(str(files("hyperjob"))).parent / name
    for path in (packaged, checkout):
        if path.exists():
            return path
    raise FileNotFoundError(f"{name} is not part of this installation; reinstall hyperjob")
