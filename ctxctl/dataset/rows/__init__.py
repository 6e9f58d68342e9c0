"""The rows of a capture in every table of a dataset, made in one pass over its requests."""
