"""The refusals of one TrainJob, each with the field that it is about."""

from hyperjob_core.api.field import SPEC, FieldError, Path, forbidden, invalid
from hyperjob_core.api.meta import Object
from hyperjob_core.api.trainer import CLUSTER_RUNTIME_KIND
from hyperjob_core.api.wire import at, string

RUNTIME_REF = SPEC.child("runtimeRef")


class Refusals:
    """Collects the refusals of a TrainJob; a field of its runtime is named below runtimeRef."""

    def __init__(self, trainjob: Object) -> None:
        reference = at(trainjob, "spec", "runtimeRef")
        kind = string(at(reference, "kind")) or CLUSTER_RUNTIME_KIND
        self.runtime = f"{kind} {string(at(reference, 'name'))}"
        self.errors: list[FieldError] = []

    def field(self, path: Path | str, text: str) -> None:
        """Refuse a field of the TrainJob; `path` as text begins below `spec`."""
        where = SPEC.child(path) if isinstance(path, str) else path
        self.errors.append(forbidden(where, text))

    def value(self, path: str, value: object, text: str) -> None:
        """Refuse the value of a field below `spec` of the TrainJob."""
        self.errors.append(invalid(SPEC.child(path), value, text))

    def of_runtime(self, path: str, text: str) -> None:
        """Refuse a field below `spec` of the runtime."""
        self.errors.append(forbidden(RUNTIME_REF, f"{self.runtime} has spec.{path}: {text}"))
