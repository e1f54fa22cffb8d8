# SPDX-License-Identifier: Apache-2.0
"""Single operators beside ONNX Runtime: the same one-node model, the same data, one core, in turns.

    operators.py --out FILE.json [--only TEXT,TEXT] [--seconds 0.6]

FILE.json and FILE.md are written after every case. README.md says what the columns mean.
"""

import argparse
import contextlib
import json
import math
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", folder) for folder in ("engine", "serving")]
import cell  # noqa: E402
import peer  # noqa: E402
from cases import all_cases  # noqa: E402
from origin import commit  # noqa: E402
from process import EngineError  # noqa: E402

PROGRAM = os.path.join(HERE, "../../build/release/bin/starling-engine")
SHORT_US = 10  # below it the call is what is measured, and no row counts
SLOWEST = 1.5  # times as long as ONNX Runtime


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="FILE", help="write the result to FILE as JSON, and its table beside it as Markdown (required)")
    parser.add_argument("--program", default=PROGRAM, metavar="FILE", help="measure the build FILE of starling-engine (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXTS", help="measure the cases whose names begin with one of TEXTS, separated by commas (default: all)")
    parser.add_argument("--seconds", type=float, default=0.6, metavar="SECONDS", help="take turns for SECONDS seconds in each case (default: %(default)s)")
    parser.add_argument("--cpu", type=int, metavar="N", help="run on CPU N (default: the first that is allowed)")
    parser.add_argument("-O", "--option", action="append", default=[], metavar="KEY=VALUE", help="set the compiler's KEY; repeatable (default: none)")
    return parser.parse_args()


def processor():
    with open("/proc/cpuinfo") as file:
        fields = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    return f"{fields['model name']}, family {fields['cpu family']}, model {fields['model']}"


class Resident:
    """ONNX Runtime in this process, under the orders of a cell.Runner: to import it anew takes longer than a case."""

    name = "onnxruntime"

    def __init__(self, model, cpu, inputs):
        self.engine, self.path, self.inputs = peer.OnnxRuntime(1), model, inputs
        os.sched_setaffinity(0, [cpu])

    def order(self, text):
        order, _, argument = text.partition(" ")
        try:
            return getattr(peer.Peer, order)(self, argument)
        except Exception as error:  # whatever it throws is an answer
            raise EngineError(f"{type(error).__name__}: {error}".replace("\n", " ")[:400]) from None

    def memory(self):
        return 0, 0


def run_case(bench, case, cpu):
    path = os.path.join(bench.folder, "case.onnx")
    inputs = case.write(path)
    bench.write_inputs(inputs)
    with contextlib.ExitStack() as stack:
        runners = [cell.Runner(stack.enter_context(bench.starling(path, 1, [cpu], inputs)), bench.folder)]
        runners.append(cell.Runner(Resident(path, cpu, inputs), bench.folder))
        failed = [f"{runner.process.name}: {runner.error}" for runner in runners if runner.error]
        if failed:
            return {"case": case.name, "error": "; ".join(failed)}
        cell.in_turns(runners, bench.seconds)
        error, text = cell.disagreement(runners[0].answers[0], runners[1].answers[0])
        ours, theirs = (runner.milliseconds() * 1e3 for runner in runners)
        return {"case": case.name, "us": ours, "onnxruntime_us": theirs, "ratio": theirs / ours,
                "ratio_interval": cell.ratio_interval(*runners), "relative_error": error, "disagrees": text}  # fmt: skip


def summary(rows):
    counted = [row for row in rows if "ratio" in row and max(row["us"], row["onnxruntime_us"]) >= SHORT_US]
    slow = [row["case"] for row in counted if row["ratio"] < 1 / SLOWEST]
    mean = math.exp(sum(math.log(row["ratio"]) for row in counted) / len(counted)) if counted else None
    return {"geomean_ratio": mean, "counted": len(counted), "slow": slow}


def table(document):
    mean = document["geomean_ratio"]
    lines = [f"{document['processor']}, commit {document['commit']}: "
             f"geometric mean {mean:.2f} of {document['counted']} cases" if mean else "nothing counted", "",
             "| case | us | ONNX Runtime us | ratio | interval | error |", "|---|---|---|---|---|---|"]  # fmt: skip
    for row in document["rows"]:
        if "error" in row:
            lines.append(f"| {row['case']} | | | | | {row['error']} |")
            continue
        low, high = row["ratio_interval"]
        error = row["disagrees"] or f"{row['relative_error']:.0e}"
        lines.append(f"| {row['case']} | {row['us']:.1f} | {row['onnxruntime_us']:.1f} | {row['ratio']:.2f} | {low:.2f} to {high:.2f} | {error} |")
    return "\n".join(lines) + "\n"


def main():
    options = parse()
    wanted = options.only.split(",")
    cases = [case for case in all_cases() if any(case.name.startswith(text) for text in wanted)]
    cpu = options.cpu if options.cpu is not None else min(os.sched_getaffinity(0))
    document = {"processor": processor(), "commit": commit(), "seconds": options.seconds, "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        bench = cell.Bench(options.program, [], options.option, options.seconds, folder)
        for case in cases:
            row = run_case(bench, case, cpu)
            document["rows"].append(row)
            document.update(summary(document["rows"]))
            if "error" in row:
                print(f"{case.name}: {row['error']}", flush=True)
            else:
                text = row["disagrees"] or f"error {row['relative_error']:.0e}"
                print(f"{case.name}: {row['us']:.1f} us, ONNX Runtime {row['onnxruntime_us']:.1f}, ratio {row['ratio']:.2f}, {text}", flush=True)
            with open(options.out, "w") as file:
                json.dump(document, file, indent=1)
            with open(os.path.splitext(options.out)[0] + ".md", "w") as file:
                file.write(table(document))
    print(f"geometric mean {document.get('geomean_ratio') or 0:.2f}; slower than {SLOWEST} times: {len(document.get('slow', []))} of {document.get('counted', 0)}")


if __name__ == "__main__":
    main()
