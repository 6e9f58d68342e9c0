"""What importers are made of: items (`parts`), conversations that turn them into steps, files and folders."""
