#!/usr/bin/env python3
"""Prints its arguments as JSON."""
import json
import sys

print(json.dumps(sys.argv[1:]), flush=True)
