"""Training program of memfleet's reader (docs in ../README.md)."""
