"""The harness: does a setting help, by how much, and could it have? Imports semmem; semmem never imports it."""

from __future__ import annotations

__all__ = ["SCHEMA"]

SCHEMA = 2
"""Version of the result files this harness writes; a reader refuses a newer one."""
