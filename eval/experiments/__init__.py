"""Experiments: conditions, the runner and its stored lists, the gate, ablations and ingredients."""
