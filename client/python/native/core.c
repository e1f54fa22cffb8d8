/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <errno.h>

/* ---- Core ---- */

static PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
        struct state *state = PyType_GetModuleState(type);
        PyObject *library, *handle;
        (void)keywords;

        if (!state || !PyArg_ParseTuple(args, "OO!:Core", &library, &PyLong_Type, &handle))
                return NULL;

        PyObject *path = PyObject_GetAttrString(library, "path");
        const char *text = path ? PyUnicode_AsUTF8AndSize(path, NULL) : NULL;
        const char *wrong = text ? sl_library_open(&state->library, text) : NULL;

        if (wrong)
                PyErr_SetString(PyExc_ImportError, wrong);
        Py_XDECREF(path);
        if (PyErr_Occurred())
                return NULL;

        struct core *core = (struct core *)PyType_GenericAlloc(type, 0);

        if (!core)
                return NULL;
        core->state = state;
        core->library = Py_NewRef(library);
        core->handle = Py_NewRef(handle);
        core->client = PyLong_AsVoidPtr(handle);
        return &core->ob_base;
}

static void core_dealloc(PyObject *self)
{
        struct core *core = (struct core *)self;

        if (core->client) {
                Py_BEGIN_ALLOW_THREADS core->state->library.close(core->client);
                Py_END_ALLOW_THREADS
        }
        Py_XDECREF(core->library);
        Py_XDECREF(core->handle);
        sl_object_free(self);
}

static PyMemberDef core_members[] = {
        {"library", T_OBJECT_EX, offsetof(struct core, library), READONLY, NULL},
        {"handle", T_OBJECT_EX, offsetof(struct core, handle), READONLY, NULL},
        {NULL, 0, 0, 0, NULL},
};

static PyType_Slot core_slots[] = {
        {Py_tp_doc, (void *)"Core(library, handle): the C handle; the last one of the client and its arrays closes it."},
        {Py_tp_new, core_new},
        {Py_tp_dealloc, core_dealloc},
        {Py_tp_members, core_members},
        {0, NULL},
};

PyType_Spec sl_core_spec = {
        .name = "starling._native.Core", .basicsize = sizeof(struct core), .flags = Py_TPFLAGS_DEFAULT, .slots = core_slots};

int sl_core_alloc(const struct core *core, uint64_t bytes, void **ret_memory)
{
        void *memory = core->state->library.alloc(core->client, bytes ? bytes : 1);

        if (!memory)
                return errno ? -errno : -ENOMEM;
        *ret_memory = memory;
        return 0;
}

void sl_core_free(const struct core *core, void *memory)
{
        core->state->library.free(core->client, memory);
}

PyObject *sl_core_raise_alloc(const struct core *core, int status, uint64_t bytes)
{
        struct starling_error error;

        core->state->library.alloc_error(core->client, bytes, status, &error);
        return sl_raise(core->state, status, error.text, 0);
}

/* ---- Block ---- */

/* Takes @memory, whatever comes of it. */
static struct block *block_over(PyTypeObject *type, struct core *core, void *memory, uint64_t bytes)
{
        struct block *block = (struct block *)PyType_GenericAlloc(type, 0);

        if (!block) {
                sl_core_free(core, memory);
                return NULL;
        }
        block->core = sl_keep(core);
        block->memory = memory;
        block->bytes = (Py_ssize_t)bytes;
        return block;
}

static PyObject *block_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
        struct state *state = PyType_GetModuleState(type);
        struct core *core;
        Py_ssize_t bytes;
        void *memory = NULL;
        int r;
        (void)keywords;

        if (!state || !PyArg_ParseTuple(args, "O!n:Block", state->core, &core, &bytes))
                return NULL;
        Py_BEGIN_ALLOW_THREADS r = sl_core_alloc(core, (uint64_t)bytes, &memory);
        Py_END_ALLOW_THREADS if (r < 0) return sl_core_raise_alloc(core, r, (uint64_t)bytes);
        return (PyObject *)block_over(type, core, memory, (uint64_t)bytes);
}

static void block_dealloc(PyObject *self)
{
        struct block *block = (struct block *)self;

        if (block->memory)
                sl_core_free(block->core, block->memory);
        sl_drop(block->core);
        sl_object_free(self);
}

static int block_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
        struct block *block = (struct block *)self;

        return PyBuffer_FillInfo(view, self, block->memory, block->bytes, 0, flags);
}

static PyObject *array_of_block(struct state *state, struct block *block, PyObject *dtype, PyObject *shape)
{
        return PyObject_CallFunctionObjArgs(state->ndarray, shape, dtype, block, NULL);
}

static PyObject *block_array(PyObject *self, PyObject *args)
{
        struct block *block = (struct block *)self;
        PyObject *dtype, *shape;

        if (!PyArg_ParseTuple(args, "OO:array", &dtype, &shape))
                return NULL;
        return array_of_block(block->core->state, block, dtype, shape);
}

static PyMethodDef block_methods[] = {
        {"array", block_array, METH_VARARGS, "array(dtype, shape): the array that this memory is."},
        {NULL, NULL, 0, NULL},
};

static PyMemberDef block_members[] = {
        {"core", T_OBJECT_EX, offsetof(struct block, core), READONLY, NULL},
        {"n_bytes", T_PYSSIZET, offsetof(struct block, bytes), READONLY, NULL},
        {NULL, 0, 0, 0, NULL},
};

static PyType_Slot block_slots[] = {
        {Py_tp_doc, (void *)"Block(core, n_bytes): memory of the arena; freed with the last array over it."},
        {Py_tp_new, block_new},
        {Py_tp_dealloc, block_dealloc},
        {Py_tp_methods, block_methods},
        {Py_tp_members, block_members},
        {Py_bf_getbuffer, block_get_buffer},
        {0, NULL},
};

PyType_Spec sl_block_spec = {
        .name = "starling._native.Block", .basicsize = sizeof(struct block), .flags = Py_TPFLAGS_DEFAULT, .slots = block_slots};

/* ---- arrays ---- */

PyObject *sl_shape_new(uint32_t rank, const uint32_t *dims)
{
        PyObject *shape = PyTuple_New(rank);

        for (uint32_t i = 0; shape && i < rank; i++) {
                PyObject *n = PyLong_FromUnsignedLong(dims[i]);

                if (!n || PyTuple_SetItem(shape, i, n) < 0)
                        Py_CLEAR(shape);
        }
        return shape;
}

PyObject *sl_array_of_memory(struct core *core, void *memory, uint64_t bytes, PyObject *dtype, uint32_t rank, const uint32_t *dims)
{
        struct block *block = block_over(core->state->block, core, memory, bytes);
        PyObject *shape = block ? sl_shape_new(rank, dims) : NULL;
        PyObject *array = shape ? array_of_block(core->state, block, dtype, shape) : NULL;

        Py_XDECREF(shape);
        sl_drop(block);
        return array;
}

bool sl_lies_in(const struct core *core, PyObject *array, const void *address)
{
        struct state *state = core->state;
        PyObject *base = Py_NewRef(array);

        if ((uintptr_t)address % STARLING_ALIGNMENT) {
                Py_DECREF(base);
                return false;
        }
        while (base && PyObject_TypeCheck(base, (PyTypeObject *)state->ndarray)) {
                PyObject *next = PyObject_GetAttr(base, state->base);

                Py_DECREF(base);
                base = next;
        }

        bool lies = base && Py_IS_TYPE(base, state->block) && ((struct block *)base)->core == core;

        Py_XDECREF(base);
        PyErr_Clear();
        return lies;
}
