"""The benchmark: generated memories in growing numbers, and the time and space of semmem and of other systems."""
