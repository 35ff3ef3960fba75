"""Reconciliation: is what was streamed what should have been, row by row."""
