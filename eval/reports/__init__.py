"""Reports of an experiment: summary, page, charts, costs, decision records."""
