"""The what-if screen: the form, the table of both replays, and what each line says."""
