"""Modes compared: the same records through every way to stream that a pipeline has, measured alike."""
