"""Many captures at once: which there are in a directory, worker processes that read them, answers kept."""
