"""The exact calculator behind calc.py."""
