"""Extractors find the terms and concepts of a memory. ``rules`` is the default: no download, no language model."""

from __future__ import annotations

from semmem.extractors.rules import Rules

__all__ = ["Rules"]
