"""Sinks: where results go, and how a commit there is atomic, ordered and fenced."""
