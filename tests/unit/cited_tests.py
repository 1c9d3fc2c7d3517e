#!/usr/bin/env python3
"""Fails when tests/README.md has not one row a case, or cites a test that is not there: `file:name`, where the file
holds the name. A C file must hold it as a test, a function or a rule; other files may hold it anywhere."""
import os
import re
import sys

CASES = 44
CITATION = re.compile(r"`([\w./-]+\.(?:c|cu|t|py|sh)):([^`]+)`")


def is_held(text, path, name):
    if path.endswith(".c"):
        return re.search(r"(START_TEST\(|X\(|\b[\w*]+ \*?)%s\b" % re.escape(name), text) is not None
    return name in text


def complaints(readme, tests):
    rows = re.findall(r"^\| (\d+) \|.*\|(.*)\|$", readme, re.MULTILINE)
    if [int(number) for number, _ in rows] != list(range(1, CASES + 1)):
        yield "the rows are not of the cases 1 to %d" % CASES
    for number, held_by in rows:
        cited = CITATION.findall(held_by)
        if not cited and "not yet: belongs to" not in held_by:
            yield "case %s: nothing holds it" % number
        for path, name in cited:
            try:
                with open(os.path.join(tests, path), encoding="utf-8") as file:
                    if not is_held(file.read(), path, name):
                        yield "case %s: %s has no %s" % (number, path, name)
            except OSError as error:
                yield "case %s: %s: %s" % (number, path, error.strerror)


def main():
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(tests, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    found = list(complaints(readme, tests))
    planted = readme.replace("test_key.c:", "test_key.c:no_", 1).replace("unit/test_ops.c:", "unit/test_none.c:", 1)
    if len(list(complaints(planted, tests))) != len(found) + 2:
        found.append("two planted citations were not noticed")
    for complaint in found:
        print("tests/README.md: " + complaint)
    return 1 if found else 0


sys.exit(main())
