"""Learned sets: a client's system prompt, tools and reminders, from recordings, to add to its logs."""
