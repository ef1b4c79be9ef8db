"""Namespaces in memory: what recalls read of those that are asked again and again, never staler than the store."""
