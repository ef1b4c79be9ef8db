"""Keep namespaces in memory that are recalled often; a recall never sees an older state than the store has."""
