# SPDX-License-Identifier: Apache-2.0
"""A machine that is too busy to answer is asked for longer, and not for ever."""

import unittest

import experiment


class Answered(unittest.TestCase):
    def asked(self, said, seconds):
        """How long each of the windows was, where the n-th gives said[n]: a number, or an error's text."""
        windows = []

        def measure(window):
            windows.append(window)
            if isinstance(said[len(windows) - 1], str):
                raise RuntimeError(said[len(windows) - 1])
            return said[len(windows) - 1]

        try:
            return experiment.answered(measure, seconds), windows
        except RuntimeError as error:
            return str(error), windows

    def test_the_first_window_with_an_answer_counts(self):
        self.assertEqual(self.asked([7.0], 0.5), (7.0, [0.5]))
        self.assertEqual(self.asked([0.0, None, "x: no request was answered in 8 s", 7.0], 0.125), (7.0, [0.125, 0.5, 2.0, 8.0]))

    def test_it_ends_where_nobody_ever_answers_and_at_any_other_error(self):
        self.assertEqual(self.asked([0.0] * 9, 0.5), ("no request was answered in 32 s", [0.5, 2.0, 8.0, 32.0]))
        self.assertEqual(self.asked(["no such model", 7.0], 0.5), ("no such model", [0.5]))


if __name__ == "__main__":
    unittest.main()
