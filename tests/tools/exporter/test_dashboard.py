# SPDX-License-Identifier: Apache-2.0
"""The dashboard for Grafana and Triton's table: they name what is exported, and promtool parses each expression."""

import json
import os
import re
import subprocess
import tempfile
import unittest

SUFFIXES = ("", "_bucket", "_sum", "_count")


def exported():
    """Names of samples, from the list of the man page."""
    with open(os.environ["STARLING_PAGE"]) as file:
        page = file.read()
    names = set()
    for name, kind in re.findall(r"^\.It Cm (starling_\w+) No \( (\w+)", page, re.M):
        names.update(name + suffix for suffix in (SUFFIXES[1:] if kind == "histogram" else SUFFIXES[:1]))
    return names, set(re.findall(r"^\.Cm (starling_\w+)", page[page.index("TRITON'S NAMES") :], re.M))


def expressions():
    with open(os.environ["STARLING_DASHBOARD"]) as file:
        dashboard = json.load(file)
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    found += [annotation["expr"] for annotation in dashboard["annotations"]["list"]]
    queries = [variable["query"]["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    return found, queries


def without_variables(expression):
    """As Grafana would send it."""
    return expression.replace("$__rate_interval", "1m").replace("$runtime", ".*").replace("$model", ".*")


class DashboardTest(unittest.TestCase):
    def test_every_name_is_exported(self):
        names, counterparts = exported()
        self.assertGreater(len(names), 50)
        self.assertGreater(len(counterparts), 5)
        found, queries = expressions()
        self.assertGreater(len(found), 30)
        used = {name for expression in found + queries for name in re.findall(r"\bstarling_\w+", expression)}
        self.assertEqual(used - names, set())
        self.assertEqual(counterparts - names, set())

    def test_panels_do_not_overlap_and_have_numbers_of_their_own(self):
        with open(os.environ["STARLING_DASHBOARD"]) as file:
            panels = json.load(file)["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        places = [
            (x, y)
            for panel in panels
            for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
        ]
        self.assertEqual(len(set(places)), len(places))
        self.assertLess(max(x for x, _ in places), 24)

    def test_promtool_parses_every_expression(self):
        found = subprocess.run(
            [os.path.join(os.path.dirname(os.path.abspath(__file__)), "get_prometheus.sh")], stdout=subprocess.PIPE, text=True
        )
        if found.returncode != 0:
            self.skipTest(found.stdout.strip())
        rules = [{"record": f"panel:{i}", "expr": without_variables(e)} for i, e in enumerate(expressions()[0])]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)  # JSON is YAML, too
            file.flush()
            said = subprocess.run(
                [os.path.join(found.stdout.strip(), "promtool"), "check", "rules", file.name],
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        self.assertEqual(said.returncode, 0, said.stdout)
        self.assertIn(f"{len(rules)} rules found", said.stdout)


if __name__ == "__main__":
    unittest.main()
