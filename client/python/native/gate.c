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

static void reopen(struct gate *gate)
{
        gate->is_shut = false;
        sl_bell_ring(&gate->changed);
}

/* Return: 0 nobody is inside; -1 with an exception, and it is open. */
static int shut(struct gate *gate)
{
        while (gate->is_shut)
                if (sl_bell_wait(&gate->changed) < 0)
                        return -1;
        gate->is_shut = true;
        while (gate->inside > 0)
                if (sl_bell_wait(&gate->changed) < 0) {
                        reopen(gate);
                        return -1;
                }
        return 0;
}

static PyObject *gate_alone(PyObject *self, PyObject *work)
{
        struct gate *gate = (struct gate *)self;

        if (shut(gate) < 0)
                return NULL;

        PyObject *result = PyObject_CallNoArgs(work);

        reopen(gate);
        return result;
}

static PyMethodDef gate_methods[] = {
        {"__enter__", gate_enter, METH_NOARGS, NULL},
        {"__exit__", (PyCFunction)(void (*)(void))gate_exit, METH_FASTCALL, NULL},
        {"alone", gate_alone, METH_O, "alone(work): what work() returns, with no other call inside."},
        {NULL, NULL, 0, NULL},
};

static PyType_Slot gate_slots[] = {
        {Py_tp_doc, (void *)"Gate(): `with gate:` for calls; alone() for what must run alone."},
        {Py_tp_new, gate_new},
        {Py_tp_dealloc, gate_dealloc},
        {Py_tp_methods, gate_methods},
        {0, NULL},
};

PyType_Spec sl_gate_spec = {
        .name = "starling._native.Gate", .basicsize = sizeof(struct gate), .flags = Py_TPFLAGS_DEFAULT, .slots = gate_slots};
