/* SPDX-License-Identifier: Apache-2.0 */
#include "handle.h"

#include "core.h"

static void clear_ports(struct handle *handle)
{
        for (uint32_t i = 0; handle->ports && i < handle->n_inputs + handle->n_outputs; i++) {
                Py_XDECREF(handle->ports[i].port);
                Py_XDECREF(handle->ports[i].name);
                Py_XDECREF(handle->ports[i].dtype);
                Py_XDECREF(handle->ports[i].shown);
        }
        PyMem_Free(handle->ports);
        handle->ports = NULL;
}

static int take_port(struct port *port, PyObject *list, uint32_t i, const struct starling_port *info)
{
        port->info = info;
        port->port = Py_XNewRef(PyList_GetItem(list, i));
        if (!port->port)
                return -1;
        port->name = PyObject_GetAttrString(port->port, "name");
        port->dtype = PyObject_GetAttrString(port->port, "dtype");
        port->shown = PyObject_GetAttrString(port->port, "shown");
        return port->name && port->dtype && port->shown ? 0 : -1;
}

static int take_ports(struct handle *handle, const struct starling_model_info *info)
{
        handle->n_inputs = info->n_inputs;
        handle->n_outputs = info->n_outputs;
        handle->ports = PyMem_Calloc(info->n_inputs + info->n_outputs + 1, sizeof(*handle->ports));
        if (!handle->ports) {
                PyErr_NoMemory();
                return -1;
        }
        for (uint32_t i = 0; i < info->n_inputs; i++)
                if (take_port(&handle->ports[i], handle->inputs, i, &info->inputs[i]) < 0)
                        return -1;
        for (uint32_t i = 0; i < info->n_outputs; i++)
                if (take_port(&handle->ports[info->n_inputs + i], handle->outputs, i, &info->outputs[i]) < 0)
                        return -1;
        return 0;
}

static int bind_to(struct handle *handle, struct state *state, PyObject *const *args)
{
        struct starling_model *model = PyLong_AsVoidPtr(args[1]);

        if (!PyObject_TypeCheck(args[0], state->core) || !model || !PyList_Check(args[3]) || !PyList_Check(args[4])) {
                PyErr_SetString(PyExc_TypeError, "bind(core, handle, name, inputs, outputs)");
                return -1;
        }
        handle->core = Py_NewRef(args[0]);
        handle->name = Py_NewRef(args[2]);
        handle->inputs = Py_NewRef(args[3]);
        handle->outputs = Py_NewRef(args[4]);
        if (take_ports(handle, state->library.model_describe(model)) < 0)
                return -1;
        handle->model = model;
        return 0;
}

static PyObject *handle_bind(PyObject *self, PyTypeObject *type, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
        struct handle *handle = (struct handle *)self;

        if (n != 5 || keywords || handle->core) {
                PyErr_SetString(PyExc_TypeError, "bind(core, handle, name, inputs, outputs), once");
                return NULL;
        }
        return bind_to(handle, PyType_GetModuleState(type), args) < 0 ? NULL : Py_NewRef(Py_None);
}

static void handle_dealloc(PyObject *self)
{
        struct handle *handle = (struct handle *)self;

        clear_ports(handle);
        Py_XDECREF(handle->core);
        Py_XDECREF(handle->name);
        Py_XDECREF(handle->inputs);
        Py_XDECREF(handle->outputs);
        sl_object_free(self);
}

static PyMethodDef handle_methods[] = {
        {"bind", (PyCFunction)(void (*)(void))handle_bind, METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
                "bind(core, handle, name, inputs, outputs): said once, before the first request."},
        {NULL, NULL, 0, NULL},
};

static PyMemberDef handle_members[] = {
        {"stale", T_BOOL, offsetof(struct handle, stale), 0, "its inputs or outputs are others by now"},
        {"asks", T_BOOL, offsetof(struct handle, asks), 0, "it is a task: each request has its variant"},
        {"combines", T_BOOL, offsetof(struct handle, combines), 0, "it is an ensemble: each result has its members"},
        {NULL, 0, 0, 0, NULL},
};

static PyType_Slot handle_slots[] = {
        {Py_tp_doc, (void *)"What requests need of a model."},
        {Py_tp_dealloc, handle_dealloc},
        {Py_tp_methods, handle_methods},
        {Py_tp_members, handle_members},
        {0, NULL},
};

PyType_Spec sl_handle_spec = {.name = "starling._native.Handle",
        .basicsize = sizeof(struct handle),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = handle_slots};
