"""Questions and judgements about your own memories, made by hand."""
