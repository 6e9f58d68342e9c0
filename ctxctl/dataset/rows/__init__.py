"""The rows of a dataset, made of one capture in one pass over its replay."""
