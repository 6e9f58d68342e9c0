"""What captures of observability tools have in common: spans, messages of unknown shape, bills."""
