# SPDX-License-Identifier: Apache-2.0
"""What people read of options: test_help.py SOURCE SHARE PROGRAM...

Every help is a verb phrase that says its default or that it is required, and what its number counts; commands say so of themselves; man pages
have the same words. PROGRAM is `starling`, whose commands have a help each, or a program with a single one. Of the Python programs below
SOURCE the calls of add_argument() are read, since they may lack the packages that they import.
"""

import ast
import pathlib
import re
import subprocess
import sys
import unittest

VERBS = """
    allow answer apply ask begin bind bound calibrate call carry check choose compare compile convert copy count describe draw drive evaluate fail find
    fix follow form gather give hold keep leave let list load log lose listen look make map measure merge move offer optimize pass predict print
    place profile put raise read refresh repeat replay report restrict run search send serve set share show start stop store swing take tell time
    translate try use wake warm watch write
""".split()  # fmt: skip
NUMBERS = {"N", "X", "SECONDS", "MS", "US", "PERCENT", "BYTES"}
UNITS = {"SECONDS": "seconds", "MS": "milliseconds", "US": "microseconds", "PERCENT": "%", "BYTES": "bytes"}


def faults(argument, text, needs_default=True):
    """What is wrong with the help `text` of an option that is followed by `argument`; the empty string where it takes none."""
    words = re.findall(r"[\w%]+", text)
    if not words or words[0] not in VERBS:
        yield f'begins with "{words[0] if words else ""}", which is not a verb of the list'
    if text.endswith("."):
        yield "ends with a full stop"
    if re.search(r"\[[^\]]*\]$", text):
        yield "has its default in brackets"
    if argument and needs_default and not re.search(r"\((default: .+|required( without --[a-z]+)?)\)$", text):
        yield "ends with neither (default: ...) nor (required)"
    name = argument.strip("[]").removesuffix(",...")
    if name in NUMBERS and name not in words:
        yield f"does not say what {name} counts"
    if name in UNITS and not re.search(rf"\b{name} {UNITS[name]}", text):
        yield f"does not say that {name} is in {UNITS[name]}"
    if re.search(r"[a-z]", re.sub(r"\.\w+|2x3x4", "", argument)) and "|" not in argument:
        yield f"has lower case in its argument {argument}"


def options_of(help_text):
    """(name, argument, text) of each option in a help as programs print it."""
    for found in re.finditer(r"^  (?:-\w, )?--([a-z-]+)(?: (\S+))?(?:  +|\n +)(.+(?:\n {20,}.+)*)", help_text, re.M):
        name, argument, text = found.groups()
        yield name, argument or "", " ".join(text.split())


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def commands_of(starling):
    """(words of the command, its summary)"""
    for prefix in ([], ["bench"]):
        for name, summary in re.findall(r"^  ([a-z-]+)  +(.+)", said_by(starling, *prefix, "help"), re.M):
            yield [*prefix, name], summary


def plain(roff):
    """A paragraph of a man page as the help has it."""
    text = " ".join(line for line in roff.splitlines() if not re.match(r"\.(?!\.)", line))
    return re.sub(r"\\f[BR]", "`", text).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


class Help(unittest.TestCase):
    def check(self, where, argument, text, **how):
        for fault in faults(argument, text, **how):
            with self.subTest(where):
                self.fail(f'{where}: {fault}: "{text}"')

    def test_options_of_commands(self):
        n = 0
        for command, _ in commands_of(PROGRAMS[0]):
            for name, argument, text in options_of(said_by(PROGRAMS[0], *command, "--help")):
                self.check(f"starling {' '.join(command)} --{name}", argument, text)
                n += 1
        self.assertGreater(n, 130)

    def test_options_of_single_programs(self):
        for program in PROGRAMS[1:]:
            options = list(options_of(said_by(program, "--help")))
            self.assertTrue(options, program)
            for name, argument, text in options:
                self.check(f"{program} --{name}", argument, text)

    def test_summaries_of_commands(self):
        for command, summary in commands_of(PROGRAMS[0]):
            self.check("starling " + " ".join(command), "", summary)

    def test_man_pages_have_the_words_of_the_help(self):
        for command, _ in commands_of(PROGRAMS[0]):
            page = (SHARE / "man" / "man1" / f"starling-{'-'.join(command)}.1").read_text()
            for name, argument, text in options_of(said_by(PROGRAMS[0], *command, "--help")):
                item = re.escape(name) + (" Ar " + re.escape(argument) if argument else "")
                found = re.search(rf"^\.It (?:Fl \w , )?Fl \\-{item}\n((?:(?!\.It|\.El).*\n)+)", page, re.M)
                self.assertIsNotNone(found, f"{command}: --{name}")
                self.assertTrue(plain(found.group(1)).startswith(text[0].upper() + text[1:] + "."), f"{command}: --{name}: {found.group(1)}")

    def test_keys_of_the_configuration_begin_with_a_noun_and_their_unit(self):
        page = (SHARE / "man" / "man5" / "starling-config.5").read_text()
        keys = re.findall(r"^\.It Cm (\S+).*\n((?:(?!\.br|\.It|\.El).*\n)+)(\.br\nValue: true or false)?", page, re.M)
        self.assertGreater(len(keys), 100)
        for key, text, flag in keys:
            with self.subTest(key):
                self.assertNotRegex(text, r"^(Of|For|In|On|What|Who|Where|When|Whether|How) ")
                unit = re.search(r"_(ms|us|seconds|bytes(?:_max)?)$", key)
                if unit:
                    self.assertRegex(text, "^" + {"m": "Milliseconds", "u": "Microseconds", "s": "Seconds", "b": "Bytes"}[unit[1][0]])
                if flag:
                    self.assertRegex(text, "^true: ")

    def test_keys_of_the_log_are_snake_case_and_have_their_unit(self):
        texts = [path.read_text() for path in sorted((SOURCE / "runtime").glob("**/*.c"))]
        keys = [key for text in texts for key in re.findall(r'sl_fields_add(?:_number|_real)?\(&?\w+, "([^"]*)"', text)]
        self.assertGreater(len(keys), 50)
        for key in keys:
            self.assertRegex(key, r"^[a-z]+(_[a-z]+)*$")
            self.assertNotRegex(key, r"^(ns|us|ms|seconds|bytes|from|with|what|before)$")
            self.assertNotRegex(key, r"(memory_max|available|shared|duration)$")
        for event in [event for text in texts for event in re.findall(r'sl_log_event\([^;]*?"([^"]*)"', text)]:
            self.assertRegex(event, r"^[a-z]+(-[a-z]+)*$")

    def test_options_of_scripts(self):
        """As the head of a script lists them, which --help prints."""
        n = 0
        for path in sorted((SOURCE / "tools").glob("*.sh")):
            head = re.match(r"(#.*\n)+", path.read_text())[0]
            for name, argument, text in re.findall(r"^#     --([a-z-]+)(?: ([A-Z]+))?  +(.+)", head, re.M):
                self.check(f"{path.name} --{name}", argument, text)
                n += 1
        self.assertGreaterEqual(n, 12)

    def test_processes_are_not_people(self):
        """Words of programs: a thread, a request, a model is "it"."""
        comment = re.compile(r"/\*.*?\*/", re.S)
        n = 0
        for folder in ("client", "kernels", "perf", "runtime", "shm", "tools"):
            for path in sorted((SOURCE / folder).glob("**/*.[ch]")):
                for text in re.findall(r'"(?:[^"\\\n]|\\.)*"', comment.sub("", path.read_text())):
                    found = re.search(r"\b(nobody|somebody|anybody|whoever)\b", text, re.I)
                    self.assertIsNone(found, f"{path.relative_to(SOURCE)}: {text}")
                    n += 1
        self.assertGreater(n, 5000)

    def test_options_of_python_programs(self):
        n = 0
        for path in sorted(SOURCE.glob("[!.b]*/**/*.py")):
            if path.is_relative_to(SOURCE / "tests"):
                continue
            for call in ast.walk(ast.parse(path.read_text())):
                if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "add_argument":
                    continue
                self.check_argument(path.relative_to(SOURCE), call)
                n += 1
        self.assertGreater(n, 100)

    def check_argument(self, path, call):
        names = [getattr(name, "value", "--") for name in call.args]
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        where = f"{path}: {' '.join(map(str, names))}"
        value = named.get("help")
        self.assertIsNotNone(value, f"{where} has no help")
        text = "".join(part.value if isinstance(part, ast.Constant) else "X" for part in getattr(value, "values", [value]))
        flag = "action" in named and named["action"].value == "store_true"
        optional = any(str(name).startswith("-") for name in names)
        argument = "" if flag else named["metavar"].value if "metavar" in named else "|" if "choices" in named or not optional else "?"
        self.assertNotEqual(argument, "?", f"{where} has no metavar")
        self.check(where, argument, text.replace("%%", "%"), needs_default=optional)

    def test_the_rule_finds_what_it_is_for(self):
        for argument, text, fault in (
            ("NAME*N,...", "rows, each so many times [all of the costs, once]", "not a verb"),
            ("N", "measure N turns [3]", "in brackets"),
            ("N", "measure turns (default: 3)", "counts"),
            ("SECONDS", "measure for SECONDS (default: 3)", "in seconds"),
            ("FILE", "read FILE", "neither"),
            ("", "print more.", "full stop"),
            ("name", "ask name (default: x)", "lower case"),
        ):
            self.assertIn(fault, " ".join(faults(argument, text)))


if __name__ == "__main__":
    SOURCE, SHARE, *PROGRAMS = map(pathlib.Path, sys.argv[1:])
    unittest.main(argv=sys.argv[:1])
