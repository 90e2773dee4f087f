"""Evaluate AI agents from their traces."""
