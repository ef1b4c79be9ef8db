"""The former address of semmem.interfaces: its modules stay importable under it for one release, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from semmem.model.other_names import renamed

warnings.warn(renamed("semmem.doors", "semmem.interfaces"), DeprecationWarning, stacklevel=2)


class _Present(MetaPathFinder, Loader):
    """Find a module of semmem.doors under its present address, so that no module exists twice."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return a spec for a module of semmem.doors, None for any other."""
        return ModuleSpec(name, self) if name.startswith(f"{__name__}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module; the import system will write its former name on it."""
        module = import_module(f"semmem.interfaces{spec.name.removeprefix(__name__)}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back, for it was executed under its present name."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state


sys.meta_path.insert(0, _Present())  # before the finder that would read a module of a package twice
