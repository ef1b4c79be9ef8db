"""Questions and judgments about your own memories, made by hand."""
