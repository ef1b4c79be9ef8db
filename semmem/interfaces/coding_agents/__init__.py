"""The interface for coding agents: their configuration, and hooks that remember and recall without being asked to."""
