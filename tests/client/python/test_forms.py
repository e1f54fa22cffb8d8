# SPDX-License-Identifier: Apache-2.0
"""Both forms of the client, the extension and ctypes, give the same results and the same errors."""

import itertools
import json
import os
import subprocess
import sys
import unittest

from starling import form
from world import FakeRuntime

HERE = os.path.dirname(os.path.abspath(__file__))


def run(form_name, *command, **options):
    environment = dict(os.environ, STARLING_PYTHON=form_name)
    return subprocess.run([sys.executable, "-B", *command], env=environment, capture_output=True, text=True, **options)


@unittest.skipUnless(form.NAME == "native", f"the extension is not in use: {form.REASON}")
class Forms(unittest.TestCase):
    def play(self, form_name):
        runtime = FakeRuntime()
        self.addCleanup(runtime.remove)
        done = run(form_name, os.path.join(HERE, "scenes.py"), runtime.socket)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(lines.pop(), ["form", form_name])
        return lines

    def test_results_and_errors_are_the_same(self):
        native, reference = self.play("native"), self.play("ctypes")
        self.assertGreater(len(native), 200)
        for pair in itertools.zip_longest(native, reference):
            with self.subTest(scene=(pair[1] or pair[0])[:2]):
                self.assertEqual(*pair)


class Choice(unittest.TestCase):
    def test_what_is_no_form_is_refused_with_those_that_are(self):
        done = run("pypy", "-c", "import starling")
        self.assertIn("STARLING_PYTHON is 'pypy', wants one of ['native', 'ctypes']", done.stderr)

    def test_native_is_refused_where_there_is_no_extension(self):
        code = "import sys; sys.implementation.name = 'other'; import starling"
        self.assertIn("STARLING_PYTHON is 'native', but other has no stable ABI", run("native", "-c", code).stderr)

    def test_nothing_takes_what_there_is(self):
        code = "import sys; sys.implementation.name = 'other'; from starling import form; print(form.NAME, form.REASON)"
        self.assertIn("ctypes other has no stable ABI", run("", "-c", code).stdout)
        self.assertEqual(run("ctypes", "-c", "from starling import form; print(form.NAME)").stdout, "ctypes\n")


if __name__ == "__main__":
    unittest.main()
