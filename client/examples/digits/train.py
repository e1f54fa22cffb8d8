# SPDX-License-Identifier: Apache-2.0
"""Trains the five networks of the digits ensemble and writes every file of this folder that is not source.

How to run, in a virtual environment of its own (about 900 MB; six minutes on one core):

    python3 -m venv /tmp/venv-digits
    /tmp/venv-digits/bin/pip install -r requirements.txt
    /tmp/venv-digits/bin/python train.py              # train, then evaluate
    /tmp/venv-digits/bin/python train.py --evaluate   # only rewrite the test split and the expected predictions

Protocol. The 1,797 images are split once, stratified: 599 are the test split, which nothing here looks at before the
end. Of the other 1,198, 240 are a validation part. For each network, each of the EPOCHS is tried on the remaining 958
and the number with the lowest validation loss is kept; the network is then trained anew on all 1,198 images for that
many epochs. All networks share every other setting.

All seeds are fixed and the arithmetic runs in one thread: two runs on one machine give the same bytes. Another kind of
processor may round differently.
"""

import argparse
import os
from functools import partial
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from jax.scipy.ndimage import map_coordinates
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from networks import CLASSES, NETWORKS, PIXELS

HERE = Path(__file__).resolve().parent
SEED = 8
TEST_SAMPLES = 599
VALIDATION_SAMPLES = 240
EPOCHS = (20, 40, 80)
BATCH = 64
PEAK_RATE = 4e-3
WEIGHT_DECAY = 1e-2
# Limits of the augmentation: about what one writer varies on an 8x8 grid.
SHIFT_PIXELS = 0.75
ROTATION_RADIANS = 0.17
SCALE = 0.1


def load_splits():
    """Images are [samples, 1, 8, 8] in 0..1; labels are 0..9."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32).reshape(-1, *PIXELS)
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=TEST_SAMPLES, stratify=digits.target, random_state=SEED
    )
    return (train_x, train_y), (test_x, test_y)


def transform_one(key, image):
    """One random small shift, rotation and scaling of a [1, 8, 8] image."""
    draw = jax.random.uniform(key, (4,), minval=-1, maxval=1)
    angle, scale = ROTATION_RADIANS * draw[0], 1 + SCALE * draw[1]
    centre = (PIXELS[1] - 1) / 2
    rows, columns = jnp.meshgrid(jnp.arange(PIXELS[1]) - centre, jnp.arange(PIXELS[2]) - centre, indexing="ij")
    from_rows = scale * (jnp.cos(angle) * rows - jnp.sin(angle) * columns) + centre + SHIFT_PIXELS * draw[2]
    from_columns = scale * (jnp.sin(angle) * rows + jnp.cos(angle) * columns) + centre + SHIFT_PIXELS * draw[3]
    return map_coordinates(image[0], [from_rows, from_columns], order=1)[None]


def transform(key, images):
    return jax.vmap(transform_one)(jax.random.split(key, len(images)), images)


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def rate_at(progress):
    """Linear warm-up over the first tenth, then half a cosine to zero."""
    return PEAK_RATE * jnp.minimum(10 * progress, 0.5 + 0.5 * jnp.cos(jnp.pi * progress))


def adam(weights, gradients, first, second, step, rate):
    """AdamW; vectors (biases, scales, shifts) are not decayed."""
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

    def move(w, m, v):
        direction = (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)
        return w - rate * (direction + (WEIGHT_DECAY * w if w.ndim > 1 else 0))

    return jax.tree.map(move, weights, first, second), first, second


@partial(jax.jit, static_argnums=0)
def train_step(graph, state, key, images, labels, step, steps):
    weights, statistics, first, second = state

    def loss_of(weights):
        logits, moved = graph.forward(weights, statistics, transform(key, images), training=True)
        return cross_entropy(logits, labels), moved

    (_, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights)
    weights, first, second = adam(weights, gradients, first, second, step, rate_at(step / steps))
    return weights, statistics, first, second


@partial(jax.jit, static_argnums=0)
def validate(graph, weights, statistics, images, labels):
    logits, _ = graph.forward(weights, statistics, images, training=False)
    return cross_entropy(logits, labels), (logits.argmax(1) == labels).mean()


def fit(graph, images, labels, epochs):
    """Trains from the graph's initial weights; returns weights and statistics."""
    random = np.random.default_rng([SEED, epochs])
    keys = jax.random.split(jax.random.key(SEED), epochs * len(images) // BATCH + 1)
    zeros = jax.tree.map(jnp.zeros_like, graph.weights)
    state = (graph.weights, graph.statistics, zeros, zeros)
    per_epoch = len(images) // BATCH
    for epoch in range(epochs):
        order = random.permutation(len(images))
        for i in range(per_epoch):
            batch = order[i * BATCH : (i + 1) * BATCH]
            step = epoch * per_epoch + i + 1
            state = train_step(
                graph, state, keys[step - 1], images[batch], labels[batch], float(step), float(per_epoch * epochs)
            )
    return state[:2]


def choose_epochs(graph, images, labels):
    part_x, held_x, part_y, held_y = train_test_split(
        images, labels, test_size=VALIDATION_SAMPLES, stratify=labels, random_state=SEED
    )
    losses = {}
    for epochs in EPOCHS:
        loss, accuracy = validate(graph, *fit(graph, part_x, part_y, epochs), held_x, held_y)
        losses[epochs] = float(loss)
        print(f"{graph.name}: {epochs} epochs: validation loss {loss:.4f}, accuracy {accuracy:.4f}", flush=True)
    return min(losses, key=losses.get)


def model_path(name):
    return HERE / "models" / name / "1" / "model.onnx"


def train(images, labels):
    for name, network in NETWORKS.items():
        graph = network(SEED)
        epochs = choose_epochs(graph, images, labels)
        weights, statistics = fit(graph, images, labels, epochs)
        path = model_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(graph.onnx_model(weights, statistics).SerializeToString(deterministic=True))
        print(f"{name}: trained for {epochs} epochs, {path.stat().st_size} bytes", flush=True)


def predict(name, images):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model_path(name), options, providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {"image": images})[0]


def report(name, predictions, labels):
    right = int((predictions.argmax(1) == labels).sum())
    confidence = predictions[np.arange(len(labels)), labels]
    print(f"{name:10} {right}/{len(labels)} {100 * right / len(labels):6.2f} %  loss {-np.log(confidence).mean():.4f}")


def evaluate(images, labels):
    """Writes the test split and what ONNX Runtime predicts on it, member by member, and the mean in member order."""
    images.astype("<f4").tofile(HERE / "test-images.f32")
    labels.astype("u1").tofile(HERE / "test-labels.u8")
    (HERE / "expected").mkdir(exist_ok=True)
    members = {name: predict(name, images) for name in NETWORKS}
    mean = np.mean([p.astype(np.float64) for p in members.values()], axis=0)
    for name, predictions in {**members, "digits": mean}.items():
        assert predictions.shape == (len(labels), CLASSES)
        predictions.astype("<f4").tofile(HERE / "expected" / f"{name}.f32")
        report(name, predictions, labels)


def main():
    parser = argparse.ArgumentParser(description="train and evaluate the digits ensemble")
    parser.add_argument("--evaluate", action="store_true", help="evaluate the models that are there, and train none")
    arguments = parser.parse_args()
    training, test = load_splits()
    if not arguments.evaluate:
        train(*training)
    evaluate(*test)


if __name__ == "__main__":
    main()
