"""The evaluation harness: measure whether a setting helps, by how much, and whether it could.

The harness imports semmem; semmem never imports the harness.
"""

from __future__ import annotations

__all__ = ["SCHEMA"]

SCHEMA = 3
"""Version of the result files this harness writes; a reader refuses a newer one."""
