"""Realistic, seeded events for any pipeline definition, with given shares of duplicates, late and poison records."""

from twinstream.generator.generate import Generated, generate

__all__ = ["Generated", "generate"]
