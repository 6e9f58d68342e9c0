"""Sibyl: what a context pack holds, and what of it its markdown renders."""
