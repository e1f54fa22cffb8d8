# SPDX-License-Identifier: Apache-2.0
"""What every peer is asked: models, the shape of a sample, and what a request may take."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    title: str
    models: tuple  # of one model, or the members of an ensemble whose mean is the answer
    source: str  # identity: written here; digits: of the examples; zoo: of perf/zoo
    shape: tuple  # of one sample
    objective_ms: float  # that the 99th percentile is to keep


WORKLOADS = {
    load.name: load
    for load in (
        Workload("noop", "no-op: 16 floats come back", ("identity",), "identity", (16,), 5),
        Workload("digits", "small: ensemble of five digits networks", ("lenet", "resnet", "densenet", "mobilenet", "mlp"), "digits", (1, 8, 8), 25),
        Workload("mobilenet", "medium: MobileNetV2", ("mobilenetv2",), "zoo", (3, 224, 224), 100),
        Workload("resnet50", "heavy: ResNet50", ("resnet50",), "zoo", (3, 224, 224), 500),
        Workload("ensemble", "ensemble of four: ResNet50, DenseNet121, EfficientNet-B0, MobileNetV2",
                 ("resnet50", "densenet121", "efficientnet-b0", "mobilenetv2"), "zoo", (3, 224, 224), 1500),
    )
}  # fmt: skip
SAMPLES = {"digits": (1, 2, 4, 8)}


def samples_of(name):
    return SAMPLES.get(name, (1,))


def zoo_models(names):
    """What perf/zoo has to write for these workloads."""
    return sorted({model for name in names if WORKLOADS[name].source == "zoo" for model in WORKLOADS[name].models})
