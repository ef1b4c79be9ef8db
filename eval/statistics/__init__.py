"""Measures, significance, comparison, verdicts, and the checks before a run."""
