# SPDX-License-Identifier: Apache-2.0
"""run_notebook.py NOTEBOOK: every cell in order, in a kernel of this interpreter; what a cell shows is what the file says that it shows.
With --write the file gets what is shown. Packages: notebook.txt."""

import os
import sys

import nbclient
import nbformat


def shown(cell):
    """The plain text of what a cell printed and returned."""
    texts = []
    for output in cell.get("outputs", []):
        texts.append("".join(output.get("text", "")) or "".join(output.get("data", {}).get("text/plain", "")))
    return "".join(texts)


def clean(notebook):
    """Times, and the version of this interpreter, stay out of the file."""
    for cell in notebook.cells:
        cell.metadata = {}
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def main(path, write):
    notebook = nbformat.read(path, as_version=4)
    wanted = [shown(cell) for cell in notebook.cells]
    nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": os.path.dirname(os.path.abspath(path))}}).execute()
    if write:
        nbformat.write(clean(notebook), path)
        return 0
    different = [
        f"cell {i}: shows {shown(cell)!r}, the file says {text!r}"
        for i, (cell, text) in enumerate(zip(notebook.cells, wanted))
        if shown(cell) != text
    ]
    print("\n".join(different))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--write" in sys.argv))
