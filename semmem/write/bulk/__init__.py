"""Read a long list in several processes: what is found in texts, the workers, and the extractor that knows it."""
