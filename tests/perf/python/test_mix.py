# SPDX-License-Identifier: Apache-2.0
"""The bound of accuracy under a load: no mix on a grid is above it, and some mix is near it."""

import itertools
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "perf/papers"))

from mix import best_mix  # noqa: E402

STEPS = 20


def on_grid(capacities, accuracies, load, cores):
    """The best mix of which all but one variant answer a multiple of a STEPS-th of what they can."""
    names, best = list(capacities), None
    for last in names:
        others = [name for name in names if name != last]
        for parts in itertools.product(range(STEPS + 1), repeat=len(others)):
            shares = {name: capacities[name] * part / STEPS for name, part in zip(others, parts)}
            shares[last] = load - sum(shares.values())
            if not 0 <= shares[last] <= capacities[last] or sum(shares[name] / capacities[name] for name in names) > cores:
                continue
            mean = sum(shares[name] * accuracies[name] for name in names) / load
            best = mean if best is None else max(best, mean)
    return best


class Mix(unittest.TestCase):
    def test_no_mix_is_above_the_bound_and_some_is_near_it(self):
        dice = random.Random(1)
        for _ in range(60):
            names = "abc"[: dice.randint(2, 3)]
            capacities = {name: dice.uniform(10, 1000) for name in names}
            accuracies = {name: dice.uniform(0.5, 1) for name in names}
            load, cores = dice.uniform(0.05, 1.1) * sum(capacities.values()), dice.choice((1, 2))
            bound, grid = best_mix(capacities, accuracies, load, cores), on_grid(capacities, accuracies, load, cores)
            if grid is None:
                continue
            self.assertIsNotNone(bound)
            self.assertGreaterEqual(bound, grid - 1e-9)
            self.assertLess(bound, grid + 0.1)

    def test_one_that_does_all_alone_answers_all_and_what_is_too_much_has_no_bound(self):
        capacities, accuracies = {"rough": 100, "fine": 10}, {"rough": 0.5, "fine": 0.9}
        self.assertAlmostEqual(best_mix(capacities, accuracies, 5, 2), 0.9)
        self.assertAlmostEqual(best_mix(capacities, accuracies, 20, 2), (10 * 0.9 + 10 * 0.5) / 20)
        self.assertAlmostEqual(best_mix(capacities, accuracies, 55, 1), (5 * 0.9 + 50 * 0.5) / 55)
        self.assertIsNone(best_mix(capacities, accuracies, 111, 2))
        self.assertIsNone(best_mix(capacities, accuracies, 101, 1))


if __name__ == "__main__":
    unittest.main()
