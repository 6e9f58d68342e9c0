"""Pure replay: events in, measured and compared steps out.  Touches no file, knows no terminal."""
