/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

#include "call.h"
#include "core.h"
#include "gate.h"
#include "handle.h"
#include "line.h"
#include "pool.h"

#include <string.h>

/* ---- what objects have in common ---- */

PyObject *sl_raise(struct state *state, int status, const char *text, uint64_t bytes_needed)
{
        PyObject *words = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
        PyObject *error =
                words ? PyObject_CallFunction(state->error_of, "iOK", status, words, (unsigned long long)bytes_needed) : NULL;

        if (error)
                PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(words);
        Py_XDECREF(error);
        return NULL;
}

PyObject *sl_raise_status(struct state *state, int status)
{
        return sl_raise(state, status, state->library.strerror(status), 0);
}

void sl_object_free(PyObject *self)
{
        PyTypeObject *type = Py_TYPE(self);
        freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

        release(self);
        Py_DECREF(type);
}

/* ---- the state ---- */

static const struct {
        PyType_Spec *spec;
        size_t place;
        const char *name;
} types[] = {
        {&sl_core_spec, offsetof(struct state, core), "Core"},
        {&sl_block_spec, offsetof(struct state, block), "Block"},
        {&sl_gate_spec, offsetof(struct state, gate), "Gate"},
        {&sl_handle_spec, offsetof(struct state, handle), "Handle"},
        {&sl_call_spec, offsetof(struct state, call), "Call"},
        {&sl_line_spec, offsetof(struct state, line), "Line"},
        {&sl_pool_spec, offsetof(struct state, pool), "Pool"},
};

static const struct {
        const char *module, *name;
        size_t place;
} imports[] = {
        {"numpy", "ndarray", offsetof(struct state, ndarray)},
        {"starling.errors", "error_of", offsetof(struct state, error_of)},
        {"starling.request", "arrange", offsetof(struct state, arrange)},
        {"starling.request", "Changed", offsetof(struct state, changed)},
        {"starling.request", "nanoseconds", offsetof(struct state, nanoseconds)},
        {"starling.request", "number", offsetof(struct state, number)},
        {"starling.request", "placed_input", offsetof(struct state, placed_input)},
        {"starling.request", "shaped", offsetof(struct state, shaped)},
        {"starling.request", "shown_output", offsetof(struct state, shown_output)},
        {"starling.request", "Times", offsetof(struct state, times)},
        {"starling.request", "answer_of", offsetof(struct state, answer)},
        {"starling.request", "members_of", offsetof(struct state, members)},
};

enum { N_TYPES = sizeof(types) / sizeof(*types), N_IMPORTS = sizeof(imports) / sizeof(*imports) };

static PyObject **place_of(struct state *state, size_t offset)
{
        return (PyObject **)((char *)state + offset);
}

static int make_types(PyObject *module, struct state *state)
{
        for (size_t i = 0; i < N_TYPES; i++) {
                PyObject *type = PyType_FromModuleAndSpec(module, types[i].spec, NULL);

                *place_of(state, types[i].place) = type;
                if (!type || PyModule_AddObjectRef(module, types[i].name, type) < 0)
                        return -1;
        }
        return 0;
}

static int import_all(struct state *state)
{
        for (size_t i = 0; i < N_IMPORTS; i++) {
                PyObject *module = PyImport_ImportModule(imports[i].module);
                PyObject *object = module ? PyObject_GetAttrString(module, imports[i].name) : NULL;

                Py_XDECREF(module);
                *place_of(state, imports[i].place) = object;
                if (!object)
                        return -1;
        }
        state->base = PyUnicode_InternFromString("base");
        state->dtype = PyUnicode_InternFromString("dtype");
        state->find = PyUnicode_InternFromString("_find");
        return state->base && state->dtype && state->find ? 0 : -1;
}

static int module_exec(PyObject *module)
{
        struct state *state = PyModule_GetState(module);

        return import_all(state) < 0 || make_types(module, state) < 0 ? -1 : 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
        struct state *state = PyModule_GetState(module);

        for (size_t i = 0; i < N_TYPES; i++)
                Py_VISIT(*place_of(state, types[i].place));
        for (size_t i = 0; i < N_IMPORTS; i++)
                Py_VISIT(*place_of(state, imports[i].place));
        return 0;
}

static int module_clear(PyObject *module)
{
        struct state *state = PyModule_GetState(module);

        for (size_t i = 0; i < N_TYPES; i++)
                Py_CLEAR(*place_of(state, types[i].place));
        for (size_t i = 0; i < N_IMPORTS; i++)
                Py_CLEAR(*place_of(state, imports[i].place));
        Py_CLEAR(state->base);
        Py_CLEAR(state->dtype);
        Py_CLEAR(state->find);
        return 0;
}

static void module_free(void *module)
{
        module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {
        {Py_mod_exec, module_exec},
        {0, NULL},
};

static PyModuleDef module_definition = {
        PyModuleDef_HEAD_INIT,
        .m_name = "starling._native",
        .m_doc = "The way of a request in C; starling.form says when it is used.",
        .m_size = sizeof(struct state),
        .m_slots = module_slots,
        .m_traverse = module_traverse,
        .m_clear = module_clear,
        .m_free = module_free,
};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
        return PyModuleDef_Init(&module_definition);
}
