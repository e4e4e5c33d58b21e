"""What a rule of a Role covers: an action, or another rule. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.transport.authorization import Action

ALL = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One PolicyRule."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def read(cls, rule: Object) -> "Rule":
        """Read the rule of a Role as it is stored."""
        return cls(
            verbs=_words(rule, "verbs"),
            groups=_words(rule, "apiGroups"),
            resources=_words(rule, "resources"),
            names=_words(rule, "resourceNames"),
            urls=_words(rule, "nonResourceURLs"),
        )

    def allows(self, action: Action) -> bool:
        """Tell whether the rule allows an action."""
        if action.verb not in self.verbs and ALL not in self.verbs:
            return False
        if action.path:
            return any(_url_matches(url, action.path) for url in self.urls)
        return (
            (action.group in self.groups or ALL in self.groups)
            and _names_resource(self.resources, action.resource, action.subresource)
            and (not self.names or action.name in self.names)
        )


@dataclass(frozen=True, slots=True)
class Right:
    """The smallest rule there is: one verb on one resource (and name), or on one URL."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = field(default="")
    url: str = ""

    def is_covered(self, by: Rule) -> bool:
        """Tell whether a rule includes this right."""
        if self.verb not in by.verbs and ALL not in by.verbs:
            return False
        if self.url:
            return any(_url_matches(url, self.url) for url in by.urls)
        resource, _, subresource = self.resource.partition("/")
        return (
            (self.group in by.groups or ALL in by.groups)
            and _names_resource(by.resources, resource, subresource)
            and (not by.names or self.name in by.names)
        )


def rights(rule: Rule) -> Iterator[Right]:
    """Break a rule down into its smallest parts."""
    for verb in rule.verbs:
        for url in rule.urls:
            yield Right(verb, url=url)
        for group in rule.groups:
            for resource in rule.resources:
                for name in rule.names or ("",):
                    yield Right(verb, group, resource, name)


def not_covered(wanted: Sequence[Rule], owned: Sequence[Rule]) -> list[Right]:
    """List the rights among `wanted` that `owned` does not give."""
    return [
        right
        for rule in wanted
        for right in rights(rule)
        if not any(right.is_covered(by=own) for own in owned)
    ]


def describe(missing: Sequence[Right]) -> list[str]:
    """Print rights as Kubernetes does, the verbs on one resource together."""
    verbs: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for right in missing:
        verbs[right.group, right.resource, right.name, right.url].append(right.verb)
    return sorted(_print(*subject, found) for subject, found in verbs.items())


def _print(group: str, resource: str, name: str, url: str, verbs: Sequence[str]) -> str:
    parts = [] if url else [("APIGroups", [group]), ("Resources", [resource])]
    if name:
        parts.append(("ResourceNames", [name]))
    if url:
        parts.append(("NonResourceURLs", [url]))
    parts.append(("Verbs", list(dict.fromkeys(verbs))))
    return "{" + ", ".join(f"{key}:{quoted(words)}" for key, words in parts) + "}"


def quoted(words: Sequence[str]) -> str:
    """Print words as Go's %q prints a list of strings."""
    return "[" + " ".join(f'"{word}"' for word in words) + "]"


def _names_resource(resources: Sequence[str], resource: str, subresource: str) -> bool:
    whole = f"{resource}/{subresource}" if subresource else resource
    if ALL in resources or whole in resources:
        return True
    return bool(subresource) and f"{ALL}/{subresource}" in resources


def _url_matches(pattern: str, path: str) -> bool:
    if pattern == ALL:
        return True
    if pattern.endswith(ALL):
        return path.startswith(pattern.rstrip(ALL))
    return pattern == path


def _words(rule: Object, key: str) -> tuple[str, ...]:
    return tuple(str(word) for word in rule.get(key) or ())
