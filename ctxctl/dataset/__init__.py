"""A dataset of many captures: rows of Parquet of each, committed exactly once, and asked by SQL."""
