"""Evidence: results held against what is written down, made again, paired, and where each of them comes from."""
