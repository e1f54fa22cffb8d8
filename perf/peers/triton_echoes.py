# SPDX-License-Identifier: Apache-2.0
"""tritonserver with two models that answer with what they get: `echo` of the C backend in native/, `python_echo` of the Python backend.

    triton_echoes.py FOLDER     prints "ready" and stays
"""

import os
import shutil
import sys
import time

import peer_triton
from plan import plan_of


def main():
    folder = sys.argv[1]
    repository, shape = os.path.join(folder, "repository"), plan_of(folder)["shape"]
    python = peer_triton.model_config(["x"], shape, ["y"], shape, 1, {"folder": folder, "does": "all"})
    native = python.replace('backend: "python"', 'backend: "echo"')
    peer_triton.write_model(repository, "python_echo", python, True)
    peer_triton.write_model(repository, "echo", native)
    server = peer_triton.Server(folder, repository)
    os.mkdir(os.path.join(server.backends, "echo"))
    library = os.path.join(os.environ["PEERS_BIN"], "..", "lib", "libtriton_echo.so")
    shutil.copy(library, os.path.join(server.backends, "echo"))
    server.start()
    print("ready", flush=True)
    time.sleep(86400)


if __name__ == "__main__":
    main()
