# SPDX-License-Identifier: Apache-2.0
"""What pages show works, and can be read: test_documents.py SOURCE SHARE STARLING DIGITS.

Programs of the pages are run by tests/client (readme.sh, python/test_readme.py); here are commands and configurations: commands by their own help,
"sixty seconds" as it stands, configurations by the reader that `starling serve` has. Pages are all Markdown files but results and the changelog.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FAR_SENTENCE, LONG_SENTENCE = 40, 30


def pages():
    listed = [path for path in SOURCE.glob("**/*.md") if not {"build", "results", ".git"} & set(path.relative_to(SOURCE).parts)]
    return sorted(path for path in listed if path.name != "CHANGELOG.md")


def blocks(text, language=None):
    """Fenced blocks of a language (None: of any, and those that are indented behind an empty line)."""
    found = re.findall(r"^```(\S*)\n(.*?)^```$", text, re.M | re.S)
    if language is not None:
        return [block for name, block in found if name == language]
    unfenced = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return [block for _, block in found] + re.findall(r"(?:(?<=\n\n)|\A)((?:    .*\n)+)", unfenced)


def literal_blocks(help_text):
    """What a help shows indented, before its options."""
    return re.findall(r"(?<=\n\n)((?:    .*\n)+)", help_text)


def sentences(text):
    """Words of each sentence of the prose: no tables, headings, code."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    lines = [line for line in text.split("\n") if not re.match(r"\s*\||#|    |\s*<", line)]
    for paragraph in re.split(r"\n\s*\n|\n\s*[-*] ", "\n".join(lines)):
        for sentence in re.split(r"(?<=[.:;?!])\s+(?=[A-Z`\[(*])", paragraph):
            words = re.findall(r"[A-Za-z0-9][\w'./-]*", sentence)
            if len(words) > 2:
                yield words


def command_lines(text):
    """(words behind `starling`) of each command in code, in lines of blocks or between backticks."""
    lines = [line for block in blocks(text) for line in block.split("\n")]
    paragraphs = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S).split("\n\n")
    lines += [" ".join(code.split()) for paragraph in paragraphs for code in re.findall(r"`([^`]+)`", paragraph)]
    for line in lines:
        found = re.match(r"\s*(?:\$ )?starling ([a-z][a-z-]*(?: .*)?)$", line.split("  #")[0].rstrip(" &"))
        if found:
            yield found[1].split()


class Documents(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = os.environ | {"XDG_CACHE_HOME": str(self.folder / "cache"), "XDG_DATA_HOME": str(self.folder / "data")}
        self.environment["STARLING_SOCKET_DIR"] = str(self.folder / "run")
        (self.folder / "cache").mkdir()

    def starling(self, *arguments):
        return subprocess.run([STARLING, *arguments], capture_output=True, text=True, env=self.environment)

    def take_configuration(self, text, where):
        """Reads it as `starling serve --config` does."""
        path = self.folder / "starling.yaml"
        path.write_text(text)
        done = self.starling("doctor", "--quick", "--only", "kernel", "--config", str(path))
        self.assertNotIn(str(path), done.stderr, f"{where}: {text}")
        self.assertNotEqual(done.returncode, 2, f"{where}: {done.stderr}")

    # ---- words ----

    def test_one_sentence_in_fifty_is_far_too_long_at_most_and_one_in_ten_long(self):
        lengths = sorted(len(words) for path in pages() if path.name == "README.md" for words in sentences(path.read_text()))
        self.assertGreater(len(lengths), 1000)
        far = sum(length > FAR_SENTENCE for length in lengths)
        self.assertLessEqual(far * 50, len(lengths), f"{far} of {len(lengths)} sentences of READMEs have more than {FAR_SENTENCE} words")
        self.assertLessEqual(lengths[len(lengths) * 9 // 10], LONG_SENTENCE)

    def test_no_sentence_goes_on_and_on(self):
        for path in pages():
            for words in sentences(path.read_text()):
                self.assertLessEqual(len(words), 50, f"{path.relative_to(SOURCE)}: {' '.join(words)}")

    def test_no_sentence_of_a_help_does(self):
        for prefix in ((), ("bench",)):
            for command in re.findall(r"(?m)^  ([a-z-]+)  ", self.starling(*prefix, "help").stdout):
                text = self.starling(*prefix, command, "--help").stdout.split("\n\n", 2)[2]
                for words in sentences(re.sub(r"(?m)^  .*\n", "", text)):
                    self.assertLessEqual(len(words), 45, f"starling {command}: {' '.join(words)}")

    def test_links_lead_somewhere(self):
        n = 0
        for path in pages():
            for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
                if not re.match(r"[a-z]+:", link):
                    self.assertTrue((path.parent / link).exists(), f"{path.relative_to(SOURCE)} links {link}")
                    n += 1
        self.assertGreater(n, 100)

    # ---- commands ----

    def test_commands_and_their_options_are_there(self):
        n, helps = 0, {}
        for path in pages():
            for command, *arguments in command_lines(path.read_text()):
                where = f"{path.relative_to(SOURCE)}: starling {command} {' '.join(arguments)}"
                is_benchmark = command == "bench" and arguments and re.fullmatch("[a-z]+", arguments[0])
                names = (command, arguments[0]) if is_benchmark else (command,)
                described = helps[names] = helps.get(names) or self.starling(*names, "--help")
                self.assertEqual(described.returncode, 0, f"{where}: {described.stderr}")
                for argument in arguments:
                    found = re.match(r"\[?(--[a-z-]+)", argument)
                    if found and found[1] != "--help":
                        self.assertRegex(described.stdout, rf"(?m)^  (-\w, )?{found[1]}\b", where)
                n += 1
        self.assertGreater(n, 80)

    def test_scripts_are_there(self):
        for path in pages():
            for script in re.findall(r"(?m)^    ((?:tools|perf)/[\w/-]+\.sh)\b", path.read_text()):
                self.assertTrue(os.access(SOURCE / script, os.X_OK), f"{path.relative_to(SOURCE)}: {script}")

    def test_sixty_seconds_serve_a_file(self):
        text = (SOURCE / "README.md").read_text()
        line = re.search(r"(?m)^    (starling serve .*?) &", text)[1]
        shutil.copy(DIGITS / "lenet" / "1" / "model.onnx", self.folder / "mine.onnx")
        with self.serving(line.split()[1:]) as name:
            self.assertRegex(self.starling("models", "--name", name).stdout, r"(?m)^mine\b.*\bready\b")

    def serving(self, arguments):
        """A runtime of its own name, which has ended its start; a name, for `with`."""
        name, test = f"documents-{os.getpid()}", self

        class Serving:
            def __enter__(self):
                self.process = subprocess.Popen(
                    [STARLING, *arguments, "--name", name], stderr=subprocess.PIPE, text=True, cwd=test.folder, env=test.environment
                )
                test.addCleanup(self.process.kill)  # where it does not come to its end
                self.log = ""
                while "event=ready " not in self.log and "event=ready\n" not in self.log:
                    line = self.process.stderr.readline()
                    test.assertTrue(line, self.log)
                    self.log += line
                return name

            def __exit__(self, *_):
                self.process.terminate()
                self.process.communicate()

        return Serving()

    # ---- configurations ----

    def test_configurations_of_models_are_served(self):
        """`# NAME/config.yaml` leads each YAML block: members are the digits networks, NAME is one of them."""
        repository = self.folder / "models"
        shutil.copytree(DIGITS, repository, ignore=shutil.ignore_patterns("config.yaml"))
        shutil.copytree(DIGITS / "mlp", repository / "NAME", ignore=shutil.ignore_patterns("config.yaml"))
        written = set()
        for path in pages():
            for block in blocks(path.read_text(), "yaml"):
                first = re.match(r"# (\S+)\n", block)
                self.assertIsNotNone(first, f"{path.relative_to(SOURCE)}: no name of a file leads {block}")
                if first[1].endswith("/config.yaml"):
                    (repository / first[1]).parent.mkdir(exist_ok=True)
                    (repository / first[1]).write_text(block)
                    written.add(first[1].split("/")[0])
                else:
                    self.take_configuration(block, path.relative_to(SOURCE))
        self.assertGreaterEqual(written, {"digits", "NAME"})
        with self.serving(["serve", str(repository)]) as name:
            said = self.starling("models", "--name", name).stdout
            for model in written:
                self.assertRegex(said, rf"(?m)^{model}\b.*\bready\b")

    def test_keys_and_values_of_the_pages_are_taken(self):
        """`key: value` between backticks on the pages of users, where the value is no placeholder."""
        page = (SHARE / "man" / "man5" / "starling-config.5").read_text()
        runtime, model = (set(re.findall(r"^\.It Cm (\S+)", part, re.M)) for part in page.split(".Sh MODEL"))
        n = 0
        for path in [SOURCE / "README.md", SOURCE / "CHANGELOG.md", *sorted((SOURCE / "docs").glob("*.md"))]:
            for key, value in re.findall(r"`([a-z][a-z_.]*): ([^`]+)`", path.read_text()):
                if re.search(r"FILE|NAME|VALUE", value) or f"ensemble.{key}" in model:
                    continue
                self.assertIn(key, runtime | model, f"{path.relative_to(SOURCE)}: {key}: {value}")
                outer = "".join(f"{part}: {{" for part in key.split(".")[:-1])
                text = outer + f"{key.split('.')[-1]}: {value}" + "}" * key.count(".")
                self.take_configuration(f"model_defaults: {{{text}}}\n" if key in model else text + "\n", path.relative_to(SOURCE))
                n += 1
        self.assertGreater(n, 12)
        for cell in re.findall(r"(?m)^\| (`[^|]+) \|", (SOURCE / "docs" / "configuration.md").read_text()):
            for key in re.findall(r"`([a-z_.]+)(?:: [^`]+)?`", cell):
                self.assertIn(key, runtime | model, f"docs/configuration.md: {cell}")

    def test_examples_of_helps_are_taken(self):
        (allocation,) = literal_blocks(self.starling("apply", "--help").stdout)
        self.take_file("allocation.yaml", allocation, "allocation", "show")
        (allocation,) = literal_blocks(self.starling("allocation", "--help").stdout)
        self.take_file("allocation.yaml", allocation, "allocation", "show")
        (costs,) = literal_blocks(self.starling("optimize", "--help").stdout)
        self.take_file("costs.yaml", re.sub(r"  optional: .*", "", costs), "optimize")
        (rates,) = literal_blocks(self.starling("lets", "--help").stdout)
        rows = "".join(f"  - {{model: {name}, class: core, source: derived, latency_ns: [100000]}}\n" for name in ("resnet50", "lenet"))
        (self.folder / "lets.yaml").write_text(
            "batches: [1]\nclasses: [{name: core, kind: cpu, units: 4}]\ndevices: [{name: cpu, class: core, memory: 1GiB}]\n"
            f"models: [{{name: resnet50, weights: 1}}, {{name: lenet, weights: 1}}]\ncosts:\n{rows}"
        )
        self.take_file("rates.yaml", rates, "lets", str(self.folder / "lets.yaml"))
        (trace,) = literal_blocks(self.starling("trace", "--help").stdout)
        self.take_configuration(trace, "starling trace --help")

    def take_file(self, name, text, *command):
        (self.folder / name).write_text(text)
        done = self.starling(*command, str(self.folder / name))
        self.assertEqual(done.returncode, 0, f"starling {' '.join(command)}: {done.stderr}{text}")

    def test_examples_of_the_manual_are_taken(self):
        page = (SHARE / "man" / "man5" / "starling-config.5").read_text()
        runtime, ensemble, task = re.findall(r"^\.Bd -literal\n(.*?)^\.Ed", page[page.index(".Sh EXAMPLES") :], re.M | re.S)
        users_of_others = re.compile(r"(?m)^ *access: .*\n")
        self.take_configuration(users_of_others.sub("", runtime.replace("\\-", "-")), "starling-config(5)")
        self.assertIn("rule: weighted_mean", ensemble)
        self.assertIn("variants: [mlp, lenet]", task)


if __name__ == "__main__":
    SOURCE, SHARE, STARLING, DIGITS = map(pathlib.Path, sys.argv[1:])
    unittest.main(argv=sys.argv[:1])
