"""Operators: each a thin use of the engine."""
