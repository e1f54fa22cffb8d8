/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core: the client's handle in C. It lives as long as the client or any array in its arena, and whoever goes last closes it.
 * Block: memory of that arena with the buffer protocol; it goes back when the last array, view or DLPack capsule over it is gone.
 */
#pragma once

#include "native.h"

struct core {
        PyObject ob_base;
        struct state *state;
        struct starling_client *client;
        PyObject *library; /* starling.library.Library */
        PyObject *handle;  /* of the client, as an int, for ctypes */
};

struct block {
        PyObject ob_base;
        struct core *core;
        void *memory;
        Py_ssize_t bytes;
};

extern PyType_Spec sl_core_spec, sl_block_spec;

/* Memory of the arena, at least one byte. Needs no interpreter lock. Return: 0, -errno. */
int sl_core_alloc(const struct core *core, uint64_t bytes, void **ret_memory);
void sl_core_free(const struct core *core, void *memory);

/* Raises what sl_core_alloc() said. Return: NULL. */
PyObject *sl_core_raise_alloc(const struct core *core, int status, uint64_t bytes);

/* An array over @memory, which is given back with it, or at once when this fails: NULL with an exception. */
PyObject *sl_array_of_memory(struct core *core, void *memory, uint64_t bytes, PyObject *dtype, uint32_t rank, const uint32_t *dims);

/* The shape of a tensor as Python has it: NULL with an exception. */
PyObject *sl_shape_new(uint32_t rank, const uint32_t *dims);

/* True when the runtime can use what lies at @address, dense, where it is: an array over a block of this client, aligned. */
bool sl_lies_in(const struct core *core, PyObject *array, const void *address);
