"""Label and field selectors of a request, as one test for stored objects."""

from dataclasses import dataclass

from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.selectors import (
    LabelSelector,
    SelectorError,
    field_value,
    parse_fields,
    parse_labels,
)
from hyperjob_sandbox.apiserver.state.store import Stored
from hyperjob_sandbox.apiserver.transport.encode import to_version
from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo

_ALWAYS = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list or watch selects; an empty one selects everything."""

    labels: LabelSelector
    fields: LabelSelector

    def __bool__(self) -> bool:
        return bool(self.labels) or bool(self.fields)

    def matches(self, stored: Stored, resource: ResourceInfo) -> bool:
        """Tell whether an object is selected."""
        if self.labels and not self.labels.matches(stored.metadata.get("labels")):
            return False
        if not self.fields:
            return True
        namespace, name = stored.key
        values = {"metadata.name": name, "metadata.namespace": namespace}
        others = [term.key for term in self.fields.requirements if term.key not in values]
        if others:
            obj = to_version(stored.obj, resource)
            values |= {path: field_value(obj, path) for path in others}
        return self.fields.matches(values)


def selection(info: RequestInfo, resource: ResourceInfo) -> Selection:
    """Read the selectors of a request; refuse what cannot be selected by (400)."""
    try:
        labels = parse_labels(info.query.get("labelSelector", ""))
    except SelectorError as error:
        raise errors.bad_request(f"unable to parse requirement: {error}") from None
    try:
        fields = parse_fields(info.query.get("fieldSelector", ""))
    except SelectorError as error:
        raise errors.bad_request(str(error)) from None
    for term in fields.requirements:
        if term.key not in (*_ALWAYS, *resource.selectable):
            raise errors.bad_request(f"field label not supported: {term.key}")
    return Selection(labels, fields)
