"""What a rule of a Role covers: an action, or another rule. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


def rights(rule: Rule) -> Iterator[Action]:
    """Break a rule down: each verb on each resource (and name), and on each URL, is an action."""
    for verb in rule.verbs:
        for url in rule.urls:
            yield Action(verb, path=url)
        for group in rule.groups:
            for resource in rule.resources:
                plural, _, subresource = resource.partition("/")
                for name in rule.names or ("",):
                    yield Action(verb, group, plural, subresource, name=name)


def not_covered(wanted: Sequence[Rule], owned: Sequence[Rule]) -> list[Action]:
    """List what `wanted` allows and `owned` does not."""
    return [
        right
        for rule in wanted
        for right in rights(rule)
        if not any(own.allows(right) for own in owned)
    ]


def describe(missing: Sequence[Action]) -> list[str]:
    """Print rights as Kubernetes does, the verbs on one resource together."""
    verbs: dict[str, list[str]] = defaultdict(list)
    for right in missing:
        below = f"/{right.subresource}" if right.subresource else ""
        parts = [("APIGroups", right.group), ("Resources", right.resource + below)]
        if right.name:
            parts.append(("ResourceNames", right.name))
        if right.path:
            parts = [("NonResourceURLs", right.path)]
        about = ", ".join(f"{key}:{quoted([word])}" for key, word in parts)
        verbs[about].append(right.verb)
    return sorted(
        f"{{{about}, Verbs:{quoted(list(dict.fromkeys(found)))}}}" for about, found in verbs.items()
    )


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
