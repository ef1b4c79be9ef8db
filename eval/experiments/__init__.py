"""Experiments: conditions, what runs them and keeps their lists, the gate, ablations and ingredients."""
