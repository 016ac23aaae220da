"""Holds objects against the schemas of Kubernetes' versions.

Standard input: one JSON object a line, with `from` (where it comes from),
`object`, and `custom` where no schema of Kubernetes tells of its kind. Arguments: the oldest version that counts. Prints what is wrong, one
line each, and last `VERSIONS OBJECTS KNOWN`: the versions looked at, how many
different objects there were, and how many were of a kind with a schema.
"""

import functools
import json
import sys

from kubernetes_validate import utils

# It reads megabytes of definitions again for each object.
utils.schema_contents = functools.lru_cache(maxsize=None)(utils.schema_contents)
utils.all_versions = functools.lru_cache(maxsize=None)(utils.all_versions)


def main():
    oldest = utils.Version(sys.argv[1])
    # Each is there twice, for strict and for lenient reading.
    versions = sorted({utils.major_minor(v) for v in utils.all_versions()}, key=utils.Version)
    versions = [version for version in versions if utils.Version(version) >= oldest]
    objects = {}
    for line in sys.stdin:
        told = json.loads(line)
        # What a schema tells of are keys and types, not names.
        objects.setdefault(json.dumps(told["object"], sort_keys=True), told)
    known = 0
    for told in objects.values():
        has_schema = False
        for version in versions:
            try:
                utils.validate(told["object"], version, strict=True)
                has_schema = True
            except utils.SchemaNotFoundError:
                if has_schema:
                    print(f"{told['from']}: gone in {version}: {told['object']['apiVersion']} {told['object']['kind']}")
            except utils.ValidationError as error:
                has_schema = True
                path = ".".join(map(str, error.absolute_path))
                print(f"{told['from']}: {told['object']['kind']} in {version}: {path}: {error.message}")
        if has_schema:
            known += 1
        elif not told["custom"]:
            print(f"{told['from']}: no version knows {told['object']['apiVersion']} {told['object']['kind']}")
    print(",".join(versions), len(objects), known)


main()
