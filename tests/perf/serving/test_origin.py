# SPDX-License-Identifier: Apache-2.0
"""Rules of what a result begins with: it names the processor so that it is told apart from others of the same name."""

import sys
import unittest

from origin import origin, processor_fields, processor_name

TWO = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel\t\t: 2\nmodel name\t: other\n\n"


class Origin(unittest.TestCase):
    def test_the_first_processor_is_named_with_family_and_model(self):
        self.assertEqual(processor_fields(TWO), {"cpu": "AMD EPYC", "family": "25", "model": "17"})
        self.assertEqual(processor_name(processor_fields(TWO)), "AMD EPYC, family 25, model 17")

    def test_what_the_system_does_not_say_is_left_out(self):
        self.assertEqual(processor_name(processor_fields("model name : Old: one\n")), "Old: one")
        self.assertEqual(processor_name(processor_fields("BogoMIPS : 50.00\nmodel :\n")), "unknown")
        self.assertEqual(processor_fields(""), {"cpu": "unknown", "family": None, "model": None})

    def test_a_result_begins_with_date_commit_command_processor_and_kernel(self):
        found = origin("perf/none.sh")
        self.assertEqual(list(found), ["date", "commit", "command", "processor", "kernel"])
        self.assertEqual(found["command"].split()[0], "perf/none.sh")
        self.assertEqual(found["command"].split()[1:], " ".join(sys.argv[1:]).split())
        self.assertTrue(found["date"].endswith("+00:00"))


if __name__ == "__main__":
    unittest.main()
