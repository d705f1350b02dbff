"""Counting text: alphabet → segment → measure → render."""
