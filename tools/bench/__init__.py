"""Benchmarks: generators of large traces, measurements against floors, and the page they are written to."""
