"""Pure replay: events in, measured and compared steps out. It touches no file and no terminal."""
