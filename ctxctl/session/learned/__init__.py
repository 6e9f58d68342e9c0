"""What recordings of the wire taught of a client: system prompt, tools, reminders that its log lacks."""
