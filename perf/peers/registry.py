# SPDX-License-Identifier: Apache-2.0
"""Who is asked, by which module, with which packages; and why a peer has no figure where it cannot have one."""

import dataclasses

from workloads import WORKLOADS

ALL = tuple(WORKLOADS)
CARRIES = "carries messages, computes no models"


@dataclasses.dataclass(frozen=True)
class Peer:
    title: str
    module: str
    variant: str = ""  # what the module's start() is told
    packages: str = "engines"  # a file of requirements/
    workloads: tuple = ALL
    why: str = ""  # it has no other workloads
    server: bool = True  # in a process apart from its client's


PEERS = {
    "starling": Peer("Starling, Python", "peer_starling"),
    "onnxruntime": Peer("ONNX Runtime in the process, Python, one thread", "peer_in_process", "onnxruntime:1", server=False),
    "onnxruntime-2": Peer("ONNX Runtime in the process, Python, two threads", "peer_in_process", "onnxruntime:2", server=False),
    "openvino": Peer("OpenVINO in the process, Python, one thread", "peer_in_process", "openvino:1", server=False),
    "openvino-2": Peer("OpenVINO in the process, Python, two threads", "peer_in_process", "openvino:2", server=False),
    "queues": Peer("Python processes with queues and ONNX Runtime", "peer_queues"),
    "triton-grpc": Peer("Triton, gRPC", "peer_triton", "grpc", "triton"),
    "triton-http": Peer("Triton, HTTP", "peer_triton", "http", "triton"),
    "triton-shm": Peer("Triton, gRPC and system shared memory", "peer_triton", "shm", "triton"),
    "triton-one": Peer("Triton, gRPC, the ensemble inside one model", "peer_triton", "one", "triton", ("digits", "ensemble"),
                       "has one model as it is"),
    "ray-handle": Peer("Ray Serve, handle", "peer_ray", "handle", "ray"),
    "ray-http": Peer("Ray Serve, HTTP", "peer_ray", "http", "ray"),
    "litserve": Peer("LitServe, HTTP", "peer_litserve", "", "litserve"),
    "iceoryx2": Peer("iceoryx2 request-response, Python, both sides spin", "peer_iceoryx2", "", "engines", ("noop",), CARRIES),
}  # fmt: skip


def chosen(text):
    """The peers of a list like "triton,onnxruntime": a word names a peer, or all whose name begins with it and a dash."""
    if not text:
        return list(PEERS)
    found = []
    for word in text.split(","):
        names = [name for name in PEERS if name == word or name.startswith(word + "-")]
        if not names:
            raise ValueError(f"--peers: {word}: wants some of {', '.join(PEERS)}")
        found += [name for name in names if name not in found]
    return found


def why_not(name, workload):
    """None when the peer can do the workload."""
    peer = PEERS[name]
    return None if workload in peer.workloads else peer.why
