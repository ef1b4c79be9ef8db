"""What a recall reads first: the scope of a question, and the postings of its keys."""
