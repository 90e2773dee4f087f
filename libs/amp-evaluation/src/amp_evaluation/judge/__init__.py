"""Asking a model for a verdict: how it is reached, what is sent, how its reply is read.

Importing this package is cheap: the client library is imported when the first judge asks.
"""
