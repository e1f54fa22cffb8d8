# SPDX-License-Identifier: Apache-2.0
"""Prints the mutants of C files, one a line: FILE <tab> sed script <tab> the changed line. Usage: generate.py RULES FILE..."""
import contextlib
import sys

from universalmutator.mutator import mutants_regexp


def bodies(lines):
    """The lines of function bodies alone, the others empty: tables and declarations are no statements."""
    inside = False
    for line in lines:
        if line.startswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        yield line if inside else "\n"


def main(rules, *paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        with contextlib.redirect_stdout(sys.stderr):
            mutants = mutants_regexp(list(bodies(lines)), [rules], ignorePatterns=[], ignoreStringOnly=True)
        for number, changed, *_ in mutants:
            changed = changed.rstrip("\n")
            script = "%dc\\%s" % (number, changed.replace("\\", "\\\\"))
            print(path, script, "%d: %s  =>  %s" % (number, lines[number - 1].strip(), changed.strip()), sep="\t")


main(*sys.argv[1:])
