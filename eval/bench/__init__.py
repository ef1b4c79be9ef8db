"""The benchmark: made memories in growing numbers, what semmem takes for them, and what others take in the same run."""
