/* SPDX-License-Identifier: Apache-2.0 */
/* Handle: what requests need of a model. starling.Model derives from it, and says once with bind() what it is. */
#pragma once

#include "native.h"

struct port {
        PyObject *port; /* starling.Port, for what is said in Python */
        PyObject *name;
        PyObject *dtype; /* numpy's, of results */
        PyObject *shown; /* numpy's, of arrays that are taken as they are: the buffer protocol has no bfloat16 */
        const struct starling_port *info;
        /* Of an output that lacked room: the most bytes that it wanted, and for a KiB of inputs. Under the interpreter lock. */
        uint64_t wanted, wanted_per_kib;
};

struct handle {
        PyObject ob_base;
        struct starling_model *model; /* NULL before bind() */
        PyObject *name, *inputs, *outputs;
        PyObject *core; /* keeps what @model points to */
        uint32_t n_inputs, n_outputs;
        struct port *ports; /* inputs, then outputs */
        char stale;         /* its inputs or outputs are others by now */
        char asks;          /* it is a task: each request has its variant */
        char combines;      /* it is an ensemble: each result has its members */
};

extern PyType_Spec sl_handle_spec;
