"""The batch layer: recomputation from the source, and the serving layer that merges it with the stream."""
