/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

int sl_gate_enter(struct gate *gate)
{
        while (gate->is_shut)
                if (sl_bell_wait(&gate->changed) < 0)
                        return -1;
        gate->inside++;
        return 0;
}

void sl_gate_leave(struct gate *gate)
{
        gate->inside--;
        if (gate->is_shut && gate->inside == 0)
                sl_bell_ring(&gate->changed);
}

static PyObject *gate_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
        struct gate *gate = (struct gate *)PyType_GenericAlloc(type, 0);
        (void)args;
        (void)keywords;

        if (gate)
                sl_bell_init(&gate->changed);
        return (PyObject *)gate;
}

static void gate_dealloc(PyObject *self)
{
        sl_bell_deinit(&((struct gate *)self)->changed);
        sl_object_free(self);
}

static PyObject *gate_enter(PyObject *self, PyObject *unused)
{
        (void)unused;
        return sl_gate_enter((struct gate *)self) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *gate_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
        (void)args;
        (void)n;
        sl_gate_leave((struct gate *)self);
        Py_RETURN_NONE;
}

static PyObject *gate_reopen(PyObject *self, PyObject *unused)
{
        struct gate *gate = (struct gate *)self;
        (void)unused;

        gate->is_shut = false;
        sl_bell_ring(&gate->changed);
        Py_RETURN_NONE;
}

static PyObject *gate_shut(PyObject *self, PyObject *unused)
{
        struct gate *gate = (struct gate *)self;
        (void)unused;

        while (gate->is_shut)
                if (sl_bell_wait(&gate->changed) < 0)
                        return NULL;
        gate->is_shut = true;
        while (gate->inside > 0)
                if (sl_bell_wait(&gate->changed) < 0) {
                        gate->is_shut = false;
                        sl_bell_ring(&gate->changed);
                        return NULL;
                }
        Py_RETURN_NONE;
}

static PyMethodDef gate_methods[] = {
        {"__enter__", gate_enter, METH_NOARGS, NULL},
        {"__exit__", (PyCFunction)(void (*)(void))gate_exit, METH_FASTCALL, NULL},
        {"shut", gate_shut, METH_NOARGS, "Waits until nobody is inside, and keeps others out until reopen()."},
        {"reopen", gate_reopen, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
};

static PyType_Slot gate_slots[] = {
        {Py_tp_doc, (void *)"Gate(): `with gate:` for calls; shut() and reopen() for who wants to be alone."},
        {Py_tp_new, gate_new},
        {Py_tp_dealloc, gate_dealloc},
        {Py_tp_methods, gate_methods},
        {0, NULL},
};

PyType_Spec sl_gate_spec = {
        .name = "starling._native.Gate", .basicsize = sizeof(struct gate), .flags = Py_TPFLAGS_DEFAULT, .slots = gate_slots};
