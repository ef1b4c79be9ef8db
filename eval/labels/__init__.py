"""Questions and judgements of one's own memories, made by hand."""
