# SPDX-License-Identifier: Apache-2.0
"""make.py FOLDER: the cases of every family beside this file, those of a family that has changed anew.

A family is a file FAMILY.py with a function `make(family)`; see case.py. Its cases are FOLDER/test_FAMILY_*, its stamp
FOLDER/FAMILY.made."""

import hashlib
import importlib
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).parent
MACHINERY = {"make.py", "case.py"}


def stamp_of(path):
    """What the cases of a family come from."""
    sources = [path, HERE / "case.py", HERE / "requirements.txt"]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def clear(folder, name):
    """Cases of the family that nobody may make any more, and its stamp first: what is broken off half way is made again."""
    (folder / f"{name}.made").unlink(missing_ok=True)
    for case in folder.glob(f"test_{name}_*"):
        shutil.rmtree(case)


def make(folder, path):
    name, stamp = path.stem, folder / f"{path.stem}.made"
    wanted = stamp_of(path)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    clear(folder, name)
    from case import Family  # with ONNX Runtime, which most runs do not need

    family = Family(name, folder)
    importlib.import_module(name).make(family)
    stamp.write_text(wanted)
    print(f"{name}: {family.count} cases")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    families = sorted(path for path in HERE.glob("*.py") if path.name not in MACHINERY)
    for stamp in folder.glob("*.made"):
        if stamp.stem not in {path.stem for path in families}:
            clear(folder, stamp.stem)
    for path in families:
        make(folder, path)


main()
