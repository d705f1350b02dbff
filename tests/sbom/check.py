"""Checks a software bill of materials: against the CycloneDX schema, Cargo.lock and the packages of a build.

usage: check.py BOM CARGO_LOCK PACKAGES

PACKAGES has one `name vVERSION …` on each line, as `cargo tree --prefix none` prints it. Every package of the build must be
in the bill, and every component of the bill in Cargo.lock with the same checksum. Then damaged copies of the bill are checked,
each of which must be refused. Prints `sbom: N components` at the end; the exit code is 1 if anything is wrong.
"""
import copy
import json
import sys
import tomllib

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def components_of(bom):
    """Every component, with the program itself and those within components."""
    found, waiting = [], [bom["metadata"]["component"], *bom.get("components", [])]
    while waiting:
        component = waiting.pop()
        found.append(component)
        waiting.extend(component.get("components", []))
    return found


def packages_in(text):
    """Names and versions in the output of `cargo tree`."""
    words = (line.split() for line in text.splitlines() if line.strip())
    return {(word[0], word[1].removeprefix("v")) for word in words}


def problems_of(bom, lock, packages):
    """What is wrong with a bill."""
    version = {"1.4": SchemaVersion.V1_4, "1.5": SchemaVersion.V1_5, "1.6": SchemaVersion.V1_6}[bom["specVersion"]]
    found = [f"schema: {error}" for error in [JsonStrictValidator(version).validate_str(json.dumps(bom))] if error]
    locked = {(package["name"], package["version"]): package for package in lock["package"]}
    listed = set()
    for component in components_of(bom):
        # The targets of a package (its library, its programs) are components within it, without a version of their own.
        purl = component.get("purl", "")
        if not purl.startswith("pkg:cargo/") or "#" in purl:
            continue
        key = (component["name"], component["version"])
        listed.add(key)
        if key not in locked:
            found.append(f"{key[0]} {key[1]} is not in Cargo.lock")
            continue
        checksum = locked[key].get("checksum")
        hashes = [entry["content"] for entry in component.get("hashes", []) if entry["alg"] == "SHA-256"]
        if checksum and hashes != [checksum]:
            found.append(f"{key[0]} {key[1]} has the SHA-256 {hashes}, and {checksum} in Cargo.lock")
        if not component.get("licenses"):
            found.append(f"{key[0]} {key[1]} has no licence")
    found.extend(f"{name} {version} is missing" for name, version in sorted(packages - listed))
    return found


def damaged(bom):
    """Copies of a bill, each with one damage."""
    first = next(index for index, component in enumerate(bom["components"]) if component.get("hashes"))
    for what in ["removed", "checksum", "version", "schema"]:
        other = copy.deepcopy(bom)
        component = other["components"][first]
        if what == "removed":
            del other["components"][first]
        elif what == "checksum":
            component["hashes"][0]["content"] = "0" * 64
        elif what == "version":
            component["version"] = "0.0.0"
        else:
            component["type"] = "unknown"
        yield what, other


def main():
    with open(sys.argv[1]) as file:
        bom = json.load(file)
    with open(sys.argv[2], "rb") as file:
        lock = tomllib.load(file)
    with open(sys.argv[3]) as file:
        packages = packages_in(file.read())
    found = problems_of(bom, lock, packages)
    for what, other in damaged(bom):
        if not problems_of(other, lock, packages):
            found.append(f"the check did not find this damage: {what}")
    for problem in found:
        print(problem)
    count = sum(1 for component in components_of(bom) if "#" not in component.get("purl", "#"))
    print(f"sbom: {count} components, CycloneDX {bom['specVersion']}, {len(found)} problems")
    return int(bool(found) or len(packages) < 100)


sys.exit(main())
