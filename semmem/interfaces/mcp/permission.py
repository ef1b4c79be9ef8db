"""What a call may do: verbs of the facade, in the namespaces of a key of the HTTP server, or in one alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from semmem.interfaces.http.keys import authorise
from semmem.interfaces.scope import Scope
from semmem.model.errors import AccessDenied

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.config import Settings
    from semmem.interfaces.http.keys import Key, Right

__all__ = ["permitted", "within_key", "within_scope"]

_VERBS = (
    "get", "history", "links", "list", "recall", "context", "recalls", "logged_recall", "stats", "remember",
    "remember_many", "update", "link", "unlink", "feedback", "forget",
)  # fmt: skip
"""The verbs that a key can allow; there is no way to any other."""


@cache
def _rights() -> Mapping[str, Right]:
    """Return the right that each of these verbs needs, as the table of routes has it."""
    from semmem.client.routes import ROUTES  # with it comes all that opens a store

    rights = {verb: route.right for route in ROUTES for verb in route.verbs}
    return {**{verb: rights[verb] for verb in _VERBS}, "_short_ids": "read"}


Check = Callable[["Right", "list[str] | None"], None]


class _Permitted:
    """A Semmem that ``check`` allows to be used: with a right, in namespaces, None being the whole store."""

    def __init__(self, memory: Semmem | _Permitted, check: Check) -> None:
        self._memory = memory
        self._check = check

    @property
    def _whole(self) -> Semmem:
        """The memory itself, without what this and others allow of it."""
        return self._memory._whole if isinstance(self._memory, _Permitted) else self._memory

    @property
    def settings(self) -> Settings:
        """The settings of the memory, which no key restricts: a tool reads its own defaults there."""
        return self._memory.settings

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if verb not in _rights():
            raise AttributeError(f"A key allows {', '.join(_VERBS)}, and nothing named {verb!r}.")
        return partial(self._called, verb)

    def _called(self, verb: str, *arguments: Any, namespace: Any = None, **more: Any) -> Any:
        drops = verb == "forget" and more.get("everything")  # the namespace, with its settings
        try:
            self._check("admin" if drops else _rights()[verb], _names(namespace))
            if more.get("hard"):
                self._check(_rights()[verb], None)  # it rewrites the files of the whole store
        except AccessDenied as error:
            if self.settings.audit:
                from semmem.client.audit import note_refused

                note_refused(self._whole, verb, _names(namespace), error)
            raise
        return getattr(self._memory, verb)(*arguments, namespace=namespace, **more)


def within_scope(memory: Any, scope: Scope) -> Any:
    """Return ``memory`` as a call of ``scope`` may use it. It raises AccessDenied for a namespace of others."""

    def check(_: Right, names: list[str] | None) -> None:
        if names is None:
            raise AccessDenied(
                f"Only the namespace {scope.namespace!r} may be used here, and this call is for the whole store."
            )
        if set(names) - {scope.namespace}:
            raise AccessDenied(f"Only the namespace {scope.namespace!r} may be used here; leave namespace out.")

    return _Permitted(memory, check) if scope.only else memory


def permitted(memory: Semmem, key: Key | None) -> Any:
    """Return ``memory`` as ``key`` allows to use it; no key is a server that needs none."""
    return memory if key is None else _Permitted(memory, partial(authorise, key))


def within_key(scope: Scope, key: Key | None) -> Scope:
    """Return ``scope`` without the namespaces that ``key`` is not for.

    Where it is not for the one to write in, that is the first of the key's own.
    """
    if key is None or key.namespaces is None:
        return scope
    readable = tuple(name for name in scope.namespaces if name in key.namespaces)
    if scope.namespace in key.namespaces:
        return Scope(scope.namespace, readable, scope.origin, scope.only)
    first = key.namespaces[0]
    return Scope(first, tuple(dict.fromkeys((first, *readable))), f"the {key.title}", scope.only)


def _names(namespace: Any) -> list[str] | None:
    """Return the namespaces of a call as a list; None is the whole store."""
    if namespace is None:
        return None
    several = isinstance(namespace, Iterable) and not isinstance(namespace, str)
    return [str(one) for one in namespace] if several else [str(namespace)]  # the facade refuses what is no string
