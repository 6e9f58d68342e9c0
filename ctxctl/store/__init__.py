"""The session store: what a replay found, as rows of one SQLite file."""
