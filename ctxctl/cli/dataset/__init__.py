"""The words of `ctxctl fleet`: making, keeping and asking a dataset of many captures."""
