"""Checks the schemas of tool definitions with Python's jsonschema, with every warning as an error."""

import json
import sys
import warnings

from jsonschema import Draft202012Validator

warnings.simplefilter("error")
count = 0
for path in sys.argv[1:]:
    with open(path) as file:
        for tool in json.load(file):
            for key in ("inputSchema", "outputSchema"):
                if key in tool:
                    Draft202012Validator.check_schema(tool[key])
                    count += 1
            if "outputSchema" in tool:
                validator = Draft202012Validator(tool["outputSchema"])
                assert validator.is_valid({"error": {"code": "busy", "message": "x"}}), tool["name"]
                assert not validator.is_valid({}), tool["name"]
assert count > 20, count
