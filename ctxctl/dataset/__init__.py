"""A dataset of many captures: what is kept of each as Parquet, committed exactly once, and asked by SQL."""
