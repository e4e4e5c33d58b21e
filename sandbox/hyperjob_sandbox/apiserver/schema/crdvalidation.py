"""Whether a CustomResourceDefinition can be served: what the server compiles of it must compile.

Pure. Names, scope and the soundness of schemas are not judged: a definition that a real API server
refuses for them may be served here.
"""

from collections.abc import Iterator

from pydantic_core import SchemaError

from hyperjob.api import field
from hyperjob.api.field import FieldError, Path
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.cel import CelError
from hyperjob_sandbox.apiserver.printing.jsonpath import JSONPath, JSONPathError
from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema


def validate_definition(definition: Object) -> Iterator[FieldError]:
    """Yield what is wrong with the versions of a definition."""
    at = Path("spec.versions")
    versions = (definition.get("spec") or {}).get("versions") or ()
    if sum(1 for version in versions if version.get("storage")) != 1:
        detail = "must have exactly one version marked as storage version"
        yield field.invalid(at, field.OMIT, detail)
    for i, version in enumerate(versions):
        below = at.index(i).child("schema", "openAPIV3Schema")
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not schema:
            yield field.required(below)
            continue
        try:
            StructuralSchema.build(schema)
        except (CelError, SchemaError) as error:
            yield field.invalid(below, field.OMIT, str(error))
        for j, column in enumerate(version.get("additionalPrinterColumns") or ()):
            path = column.get("jsonPath") or ""
            try:
                JSONPath.compile(path)
            except JSONPathError as error:
                columns = at.index(i).child("additionalPrinterColumns")
                yield field.invalid(columns.index(j).child("JSONPath"), path, str(error))
