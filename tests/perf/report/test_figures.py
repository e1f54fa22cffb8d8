# SPDX-License-Identifier: Apache-2.0
"""Figures on pages are those of the results that they name, and links of pages lead somewhere."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

import figures

ROOT = figures.ROOT
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def pages():
    """Every Markdown file of the tree, without what builds and environments hold."""
    return [page for page in ROOT.rglob("*.md") if not {"build", "node_modules", ".venv"} & set(page.relative_to(ROOT).parts)]


class Pages(unittest.TestCase):
    def test_figures_are_what_the_results_say(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "perf/report/figures.py", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_row_stands_on_the_file_that_it_links(self):
        """By another way than the page's: one figure of each of three results, found in the text."""
        page = (ROOT / "perf/FIGURES.md").read_text(encoding="utf-8")
        with open(ROOT / "perf/results/noop-epyc25-2026-11-29.json", encoding="utf-8") as file:
            self.assertIn(f"| {json.load(file)['requests_per_second'] / 1e6:.1f} M/s |", page)
        with open(ROOT / "perf/results/trees-2026-11-22.json", encoding="utf-8") as file:
            for row in json.load(file)["rows"]:
                self.assertRegex(page, rf"\| {row['model']} \| {row['batch']} \|.*\| {row['ratio']:.2f} x \|")
        with open(ROOT / "perf/results/precision-epyc25-2026-11-28.json", encoding="utf-8") as file:
            self.assertIn(f"{json.load(file)['by_cores']['1']['bf16_over_fp32']['geomean']:.2f} x, least", page)

    def test_every_result_is_named_by_a_page(self):
        text = "".join(page.read_text(encoding="utf-8") for page in pages())
        self.assertEqual([file.name for file in (ROOT / "perf/results").iterdir() if file.name not in text], [])

    def test_links_lead_to_files(self):
        for page in pages():
            for link in LINK.findall(page.read_text(encoding="utf-8")):
                if "://" not in link:
                    with self.subTest(page=str(page.relative_to(ROOT)), link=link):
                        self.assertTrue((page.parent / pathlib.Path(link)).exists())

    def test_the_front_page_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_bytes()), 8000)


if __name__ == "__main__":
    unittest.main()
