# SPDX-License-Identifier: Apache-2.0
"""Rules of the derived cost tables: they are what their formula gives, say so, and the formula keeps to what was published."""

import os
import tempfile
import unittest

import derive
import devices
import lets
import networks


class Tables(unittest.TestCase):
    def test_each_is_what_the_formula_gives(self):
        self.assertEqual(derive.differing(derive.HERE), [])

    def test_one_that_was_changed_by_hand_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, text in derive.tables().items():
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.write(text.replace("ResNet152, class: T4, source: derived", "ResNet152, class: T4, source: measured"))
            self.assertEqual(sorted(derive.differing(directory)), ["elastic-t4.yaml", "ensembles-t4.yaml"])

    def test_none_says_that_it_was_measured(self):
        for name, text in derive.tables().items():
            self.assertIn("# Derived, not measured", text, name)
            self.assertNotIn("source: measured", text, name)


class Formula(unittest.TestCase):
    def test_it_keeps_within_four_per_cent_of_what_was_published(self):
        made = derive.formulas()
        self.assertLess(made[devices.TITAN_RTX][0].error(derive.titan_points()), 0.04)
        self.assertLess(made[devices.V100][0].error(derive.v100_points()), 0.04)

    def test_three_workers_beside_each_other_take_what_figure_12_says(self):
        launches = 1e3 * derive.titan_formula().launch * networks.RESNET152.layers
        shares = 2 * (1 - launches / 29.2) + 1 - launches / 49.5
        first = 29.2 * shares * (1 + 2 * derive.contention())
        self.assertAlmostEqual((3 * first + 49.5 - 29.2) / 3, devices.E2BIRD_FIGURE_12_MS, 1)

    def test_least_squares_find_what_made_the_points(self):
        terms = [[1, 2, 3], [4, 5, 7], [1, 8, 2], [3, 1, 1]]
        found = derive.fit(terms, [sum(a * b for a, b in zip(row, (0.5, 2, 3))) for row in terms])
        for got, was in zip(found, (0.5, 2, 3)):
            self.assertAlmostEqual(got, was, 9)


class Lets(unittest.TestCase):
    def test_a_batch_of_32_on_the_whole_gpu_takes_half_of_the_published_objective(self):
        for network in networks.GPULETS:
            self.assertAlmostEqual(lets.turing_latencies(network, 1)[-1], devices.GPULETS_OBJECTIVES_MS[network.name] / 2000, 9)

    def test_more_samples_take_no_less_and_more_units_no_more(self):
        for network in networks.GPULETS:
            for make in (
                lambda share, n=network: lets.turing_latencies(n, share),
                lambda share, n=network: [lets.host_latency(n, b, 8 * share) for b in lets.BATCHES],
            ):
                rows = [make(eighths / 8) for eighths in range(1, 9)]
                for row in rows:
                    self.assertEqual(row, sorted(row))
                for batch in zip(*rows):
                    self.assertEqual(list(batch), sorted(batch, reverse=True))

    def test_a_sample_never_gets_dearer_in_a_larger_batch_on_a_whole_gpu(self):
        for network in networks.GPULETS:
            each = [seconds / batch for seconds, batch in zip(lets.turing_latencies(network, 1), devices.GPULETS_BATCHES)]
            self.assertTrue(all(a >= b * (1 - 1e-9) for a, b in zip(each, each[1:])), (network.name, each))

    def test_each_table_says_what_is_published_derived_and_assumed(self):
        for name, text in lets.tables(derive.formulas()[devices.H100][0]).items():
            for word in ("Published:", "Assumed:"):
                self.assertIn(word, text, name)


class Skeleton(unittest.TestCase):
    def test_it_counts_the_known_resnets(self):
        known = {network.name: network for network in networks.IMN12}
        for name, depth in (("ResNet18", 18), ("ResNet34", 34)):
            macs, outputs, parameters = networks.count_skeleton(depth, 1, 224, 4)
            self.assertAlmostEqual(macs / 1e9 / known[name].gmacs, 1, 1)
            self.assertAlmostEqual(outputs / 1e6 / known[name].macts, 1, 1)
            self.assertAlmostEqual(parameters / 1e6 / known[name].mparams, 1, 1)

    def test_the_families_have_the_ranges_of_the_paper(self):
        for family, n in ((networks.FOS14, 14), (networks.CIF36, 36)):
            self.assertEqual((len(family), family[0].layers, family[-1].layers), (n, 10, 132))
            self.assertTrue(family[0].name.endswith("x3.00") and family[-1].name.endswith("x0.50"))


if __name__ == "__main__":
    unittest.main()
