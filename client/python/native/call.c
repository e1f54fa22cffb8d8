/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <errno.h>
#include <string.h>

#define GUESS_BYTES     65536u /* of outputs whose size only the model knows */
#define NS_PER_SECOND   1e9
#define REASON_STOPPING 2   /* as in starling.errors */
#define PLAIN_SECONDS   1e9 /* time-outs below it cannot overflow */

/* ---- what is given, in the order of the model ---- */

static bool has_all(PyObject *dict, const struct port *ports, uint32_t n)
{
        if (PyDict_Size(dict) != (Py_ssize_t)n)
                return false;
        for (uint32_t i = 0; i < n; i++)
                if (!PyDict_GetItemWithError(dict, ports[i].name))
                        return false;
        return true;
}

static PyObject *values_of(PyObject *dict, const struct port *ports, uint32_t n)
{
        PyObject *arranged = PyTuple_New(n);

        for (uint32_t i = 0; arranged && i < n; i++) {
                PyObject *value = Py_XNewRef(PyDict_GetItemWithError(dict, ports[i].name));

                if (!value && !PyErr_Occurred())
                        PyErr_SetString(PyExc_RuntimeError, "a dict has changed while it was read");
                if (!value || PyTuple_SetItem(arranged, i, value) < 0)
                        Py_CLEAR(arranged);
        }
        return arranged;
}

static uint32_t count_required(const struct port *ports, uint32_t n)
{
        while (n && ports[n - 1].info->optional)
                n--;
        return n;
}

/* As starling.request.arrange(), which has the words for what does not suit. */
static PyObject *arrange_unusual(struct state *state, const struct handle *handle, PyObject *values, bool are_inputs)
{
        PyObject *list = PyObject_CallFunction(state->arrange, "OOsO", values, are_inputs ? handle->inputs : handle->outputs,
                are_inputs ? "input" : "output", (PyObject *)handle);
        PyObject *arranged = list ? PySequence_Tuple(list) : NULL;

        Py_XDECREF(list);
        return arranged;
}

/* A tuple of one value for each port, or for each that is required, from a dict by name, a list or tuple in order, or the only
 * value itself. */
static PyObject *arrange(struct state *state, const struct handle *handle, PyObject *values, bool are_inputs)
{
        const struct port *ports = handle->ports + (are_inputs ? 0 : handle->n_inputs);
        uint32_t n = are_inputs ? handle->n_inputs : handle->n_outputs;
        bool in_order = PyList_Check(values) || PyTuple_Check(values);

        if (are_inputs && !(in_order && n > 1)) /* a sequence says by its length what it has */
                n = count_required(ports, n);
        if (PyDict_CheckExact(values) && has_all(values, ports, n))
                return values_of(values, ports, n);
        if (PyErr_Occurred())
                return NULL;
        if (n == 1 && !PyDict_Check(values) && values != Py_None && (are_inputs || !in_order))
                return PyTuple_Pack(1, values);
        if (n > 1 && PyTuple_CheckExact(values) && PyTuple_Size(values) == (Py_ssize_t)n)
                return Py_NewRef(values);
        return arrange_unusual(state, handle, values, are_inputs);
}

/* ---- arrays ---- */

/* True for an array whose type is the port's; anything else is looked at in Python. */
static bool is_plain(const struct state *state, const struct port *port, PyObject *value)
{
        if (!PyObject_TypeCheck(value, (PyTypeObject *)state->ndarray))
                return false;

        PyObject *dtype = PyObject_GetAttr(value, state->dtype);
        bool same = dtype == port->shown;

        if (!dtype)
                PyErr_Clear();
        Py_XDECREF(dtype);
        return same;
}

static bool is_tensor_shape(const Py_buffer *view)
{
        bool is = view->ndim <= STARLING_RANK_MAX;

        for (int i = 0; is && i < view->ndim; i++)
                is = view->shape[i] <= UINT32_MAX;
        return is;
}

/* @empty: one without elements will do. Return: 0; 1 it is empty, not dense or of a shape that no tensor has; -1 with an exception.
 */
static int view_dense(PyObject *array, bool empty, Py_buffer *view)
{
        if (PyObject_GetBuffer(array, view, PyBUF_STRIDES) < 0)
                return -1;
        if ((view->len > 0 || empty) && is_tensor_shape(view) && PyBuffer_IsContiguous(view, 'C'))
                return 0;
        PyBuffer_Release(view);
        return 1;
}

static void describe(struct starling_tensor *tensor, const struct port *port, const Py_buffer *view)
{
        tensor->bytes = (uint64_t)view->len;
        tensor->dtype = port->info->dtype;
        tensor->rank = (uint32_t)view->ndim;
        for (int i = 0; i < view->ndim; i++)
                tensor->dims[i] = (uint32_t)view->shape[i];
}

/* The tensor is @array itself, which is kept. */
static void use_where_it_is(struct call *call, uint32_t i, PyObject *array, Py_buffer *view)
{
        describe(&call->tensors[i], &call->handle->ports[i], view);
        call->tensors[i].data = view->buf;
        call->slots[i].array = Py_NewRef(array);
        PyBuffer_Release(view);
}

static int refuse_view(int r)
{
        if (r > 0)
                PyErr_SetString(PyExc_RuntimeError, "an array does not show its memory as it says");
        return -1;
}

/* What is empty may be a request of no samples, which starling.request sees. @seen: it has. Return: as view_dense(). */
static int take_input_array(struct call *call, uint32_t i, PyObject *array, bool seen)
{
        Py_buffer *view = &call->slots[i].view;
        int r = view_dense(array, seen, view);

        if (r != 0)
                return r;
        if (sl_lies_in(call->core, array, view->buf))
                use_where_it_is(call, i, array, view);
        else
                describe(&call->tensors[i], &call->handle->ports[i], view);
        return 0;
}

/* What is not taken as it is, starling.request refuses, or converts and copies to the arena. */
static int take_input(struct call *call, uint32_t i, PyObject *value)
{
        const struct port *port = &call->handle->ports[i];

        if (value == Py_None && port->info->optional)
                return 0; /* it is left out: its tensor stays empty */
        int r = is_plain(call->state, port, value) ? take_input_array(call, i, value, false) : 1;

        if (r <= 0)
                return r;

        PyObject *placed =
                PyObject_CallFunctionObjArgs(call->state->placed_input, call->core, call->handle->name, port->port, value, NULL);

        if (!placed)
                return -1;
        r = take_input_array(call, i, placed, true);
        Py_DECREF(placed);
        return r == 0 ? 0 : refuse_view(r);
}

static int take_inputs(struct call *call, PyObject *values)
{
        PyObject *arranged = arrange(call->state, call->handle, values, true);
        int r = arranged ? 0 : -1;

        for (uint32_t i = 0; r == 0 && i < (uint32_t)PyTuple_Size(arranged); i++) /* those behind are left out */
                r = take_input(call, i, PyTuple_GetItem(arranged, i));
        Py_XDECREF(arranged);
        return r;
}

/* Return: 0; 1 it is none of those that are taken as they are. */
static int take_output_array(struct call *call, uint32_t i, PyObject *array)
{
        Py_buffer view;

        if (!is_plain(call->state, &call->handle->ports[i], array))
                return 1;

        int r = view_dense(array, false, &view);

        if (r != 0)
                return r;
        if (view.readonly || !sl_lies_in(call->core, array, view.buf)) {
                PyBuffer_Release(&view);
                return 1;
        }
        use_where_it_is(call, i, array, &view);
        return 0;
}

/* An output that NumPy can show only by another type, or that is empty: starling.request refuses it or says what memory it is. */
static int take_output(struct call *call, uint32_t i, PyObject *array)
{
        Py_buffer view;
        int r = take_output_array(call, i, array);

        if (r <= 0)
                return r;

        PyObject *shown =
                PyObject_CallFunctionObjArgs(call->state->shown_output, call->core, call->handle->ports[i].port, array, NULL);

        if (!shown)
                return -1;
        r = PyObject_GetBuffer(shown, &view, PyBUF_STRIDES);
        if (r == 0 && !is_tensor_shape(&view)) {
                PyBuffer_Release(&view);
                r = refuse_view(1);
        }
        if (r == 0)
                use_where_it_is(call, i, array, &view);
        Py_DECREF(shown);
        return r;
}

static int take_given_outputs(struct call *call, PyObject *values)
{
        PyObject *arranged = arrange(call->state, call->handle, values, false);
        int r = arranged ? 0 : -1;

        for (uint32_t i = 0; r == 0 && i < call->n_outputs; i++)
                r = take_output(call, call->n_inputs + i, PyTuple_GetItem(arranged, i));
        Py_XDECREF(arranged);
        return r;
}

/* ---- outputs of the call's own ---- */

static uint32_t samples_of(const struct call *call)
{
        for (uint32_t i = 0; i < call->n_inputs; i++) {
                int32_t axis = call->handle->ports[i].info->batch_axis;

                if (axis >= 0 && (uint32_t)axis < call->tensors[i].rank)
                        return call->tensors[i].dims[axis];
        }
        return 1;
}

static uint64_t input_bytes_of(const struct call *call)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < call->n_inputs; i++)
                bytes += call->tensors[i].bytes;
        return bytes;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* As output @port has wanted in proportion to the inputs; a quarter more than ever at most, so that few requests are computed twice
 * where it grows. */
static uint64_t learned_bytes(const struct call *call, const struct port *port)
{
        uint64_t bytes, most = port->wanted + port->wanted / 4;

        if (__builtin_mul_overflow(port->wanted_per_kib, input_bytes_of(call), &bytes))
                return most;
        return least_of(bytes / 1024 + 1, most);
}

static uint64_t guess_bytes(const struct call *call, const struct port *port)
{
        uint64_t guess = most_of(GUESS_BYTES, learned_bytes(call, port));

        for (uint32_t i = 0; i < call->n_inputs; i++)
                guess = most_of(guess, call->tensors[i].bytes);
        return guess;
}

static void learn(const struct call *call, struct port *port, uint64_t bytes_needed)
{
        uint64_t inputs = most_of(input_bytes_of(call), 1), per_kib;

        if (__builtin_mul_overflow(bytes_needed, 1024, &per_kib))
                return;
        port->wanted = most_of(port->wanted, bytes_needed);
        port->wanted_per_kib = most_of(port->wanted_per_kib, per_kib / inputs + 1);
}

/* Flat: its shape is known when it is done. */
static void ask_for_items(struct starling_tensor *tensor, uint64_t items, uint64_t item_bytes)
{
        tensor->bytes = items * item_bytes;
        tensor->rank = 1;
        tensor->dims[0] = (uint32_t)items;
}

static uint64_t item_bytes_of(const struct call *call, uint32_t i)
{
        return call->state->library.dtype_bytes(call->handle->ports[i].info->dtype);
}

/* Room for what the model says, or a guess where it does not say. */
static void ask_for_output(struct call *call, uint32_t i, uint32_t samples)
{
        const struct starling_port *info = call->handle->ports[i].info;
        struct starling_tensor *tensor = &call->tensors[i];
        bool known = info->rank > 0 || info->dims[0] >= 0;

        tensor->dtype = info->dtype;
        tensor->rank = info->rank;
        tensor->bytes = item_bytes_of(call, i);
        for (uint32_t axis = 0; axis < info->rank; axis++) {
                known &= info->dims[axis] >= 0 || (int32_t)axis == info->batch_axis;
                tensor->dims[axis] = (int32_t)axis == info->batch_axis ? samples : (uint32_t)info->dims[axis];
                if (__builtin_mul_overflow(tensor->bytes, (uint64_t)tensor->dims[axis], &tensor->bytes))
                        tensor->bytes = UINT64_MAX; /* more than there is */
        }
        if (!known)
                ask_for_items(tensor, guess_bytes(call, &call->handle->ports[i]) / item_bytes_of(call, i), item_bytes_of(call, i));
}

/* What is not wanted stays without a type, and gets no memory (Selection.rooms of starling.request). */
static int take_outputs(struct call *call, PyObject *values)
{
        const char *wanted =
                PyBytes_Check(values) && PyBytes_Size(values) == (Py_ssize_t)call->n_outputs ? PyBytes_AsString(values) : NULL;

        call->given = values != Py_None && !wanted;
        if (call->given)
                return take_given_outputs(call, values);

        uint32_t samples = samples_of(call);

        for (uint32_t i = 0; i < call->n_outputs; i++)
                if (!wanted || wanted[i])
                        ask_for_output(call, call->n_inputs + i, samples);
        return 0;
}

static bool is_unwanted(const struct call *call, uint32_t i)
{
        return i >= call->n_inputs && !call->tensors[i].dtype;
}

bool sl_call_grow(struct call *call, uint64_t bytes_needed)
{
        if (call->given)
                return false;
        for (uint32_t i = call->n_inputs; i < call->n_inputs + call->n_outputs; i++) {
                uint64_t item_bytes = item_bytes_of(call, i);

                if (is_unwanted(call, i) || call->tensors[i].bytes >= bytes_needed)
                        continue;
                sl_core_free(call->core, call->slots[i].memory);
                call->slots[i].memory = NULL;
                learn(call, &call->handle->ports[i], bytes_needed);
                ask_for_items(&call->tensors[i], (bytes_needed + item_bytes - 1) / item_bytes, item_bytes);
                return true;
        }
        return false;
}

/* ---- the request ---- */

/* A number that a C field has room for, as starling.request says it, which has the words for what is none. */
static int take_field(struct state *state, const char *name, PyObject *value, uint64_t most, uint64_t *ret_number)
{
        PyObject *number = PyLong_Check(value) ? Py_NewRef(value) : PyObject_CallFunctionObjArgs(state->number, value, NULL);
        int r = -1;

        if (!number)
                return -1;
        *ret_number = PyLong_AsUnsignedLongLong(number);
        if (!PyErr_Occurred() && *ret_number <= most)
                r = 0;
        else if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_OverflowError))
                PyErr_Format(PyExc_ValueError, "%s is %S, wants 0 to %llu", name, number, (unsigned long long)most);
        Py_DECREF(number);
        return r;
}

static int take_deadline(struct call *call, PyObject *timeout)
{
        struct state *state = call->state;
        uint64_t ns = 0;

        if (timeout == Py_None)
                return 0;
        if (PyFloat_CheckExact(timeout)) {
                double seconds = PyFloat_AsDouble(timeout);

                if (seconds > 0 && seconds < PLAIN_SECONDS)
                        ns = (uint64_t)(seconds * NS_PER_SECOND);
        }
        if (ns == 0) {
                PyObject *number = PyObject_CallFunctionObjArgs(state->nanoseconds, timeout, NULL);
                int r = number ? take_field(state, "timeout", number, UINT64_MAX, &ns) : -1;

                Py_XDECREF(number);
                if (r < 0)
                        return -1;
        }
        call->request.deadline_ns = state->library.clock_ns() + ns;
        return 0;
}

static int take_header(struct call *call, const struct wish *wish)
{
        struct starling_request *request = &call->request;
        uint64_t priority;

        if (take_field(call->state, "priority", wish->priority, UINT32_MAX, &priority) < 0 ||
                take_field(call->state, "session", wish->session, UINT64_MAX, &request->session) < 0 ||
                take_deadline(call, wish->timeout) < 0)
                return -1;
        request->priority = (uint32_t)priority;
        request->model = call->handle->model;
        request->inputs = call->tensors;
        request->outputs = call->tensors + call->n_inputs;
        request->n_inputs = call->n_inputs;
        request->n_outputs = call->n_outputs;
        request->user_data = (uint64_t)(uintptr_t)call;
        return 0;
}

static struct call *call_alloc(struct core *core, struct handle *handle)
{
        uint32_t n = handle->n_inputs + handle->n_outputs;
        struct call *call = (struct call *)PyType_GenericAlloc(core->state->call, n);

        if (!call)
                return NULL;
        call->state = core->state;
        call->core = sl_keep(core);
        call->handle = sl_keep(handle);
        call->n_inputs = handle->n_inputs;
        call->n_outputs = handle->n_outputs;
        call->slots = (struct slot *)(call->tensors + n);
        return call;
}

struct call *sl_call_new(struct core *core, struct handle *handle, const struct wish *wish)
{
        if (!handle->model) {
                PyErr_SetString(PyExc_ValueError, "the model is not bound");
                return NULL;
        }
        if (core->state->library.model_changed(handle->model)) {
                handle->stale = 1;
                PyErr_SetNone(core->state->changed);
                return NULL;
        }

        struct call *call = call_alloc(core, handle);

        if (!call)
                return NULL;
        if (take_inputs(call, wish->inputs) < 0 || take_outputs(call, wish->outputs) < 0 || take_header(call, wish) < 0)
                Py_CLEAR(call);
        return call;
}

/* ---- memory ---- */

static int place(struct call *call, uint32_t i)
{
        struct slot *slot = &call->slots[i];
        struct starling_tensor *tensor = &call->tensors[i];
        uint64_t item_bytes = item_bytes_of(call, i);

        if (slot->array || slot->memory || (i < call->n_inputs && !tensor->bytes) || is_unwanted(call, i))
                return 0;

        int r = sl_core_alloc(call->core, tensor->bytes > item_bytes ? tensor->bytes : item_bytes, &slot->memory);

        if (r < 0) {
                call->refused_bytes = tensor->bytes;
                return r;
        }
        tensor->data = slot->memory;
        if (slot->view.obj)
                memcpy(slot->memory, slot->view.buf, tensor->bytes);
        return 0;
}

int sl_call_place(struct call *call)
{
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < call->n_inputs + call->n_outputs; i++)
                r = place(call, i);
        return r;
}

void sl_call_placed(struct call *call)
{
        for (uint32_t i = 0; i < call->n_inputs; i++)
                if (call->slots[i].view.obj)
                        PyBuffer_Release(&call->slots[i].view);
}

PyObject *sl_call_raise_place(const struct call *call, int status)
{
        return sl_core_raise_alloc(call->core, status, call->refused_bytes);
}

/* ---- the result ---- */

static PyObject *raise_failure(struct call *call)
{
        const struct starling_completion *completion = &call->completion;
        char text[STARLING_TEXT_BYTES];

        call->handle->stale |= completion->status == -ESTALE;
        call->state->library.reason_text(completion, text, sizeof(text));

        PyObject *words = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
        PyObject *whole = words ? PyUnicode_FromFormat("model \"%U\": %U", call->handle->name, words) : NULL;
        const char *utf8 = whole ? PyUnicode_AsUTF8AndSize(whole, NULL) : NULL;

        bool stops = completion->status == -ECANCELED && completion->reason.code == REASON_STOPPING;

        if (utf8)
                sl_raise(call->state, stops ? -ESHUTDOWN : completion->status, utf8, completion->bytes_needed);
        Py_XDECREF(words);
        Py_XDECREF(whole);
        return NULL;
}

static bool has_shape(const struct starling_tensor *tensor, const struct starling_shape *shape)
{
        return tensor->rank == shape->rank && memcmp(tensor->dims, shape->dims, shape->rank * sizeof(*shape->dims)) == 0;
}

/* The caller's own array, or a view of it when the model wrote less. */
static PyObject *given_output(struct call *call, uint32_t i, const struct starling_shape *shape)
{
        PyObject *array = call->slots[i].array;

        if (!shape || has_shape(&call->tensors[i], shape))
                return Py_NewRef(array);

        PyObject *dims = sl_shape_new(shape->rank, shape->dims);
        PyObject *view =
                dims ? PyObject_CallFunction(call->state->shaped, "OOK", array, dims, (unsigned long long)shape->bytes) : NULL;

        Py_XDECREF(dims);
        return view;
}

/* Takes the memory out of the call. */
static PyObject *own_output(struct call *call, uint32_t i, const struct starling_shape *shape)
{
        const struct starling_tensor *tensor = &call->tensors[i];
        void *memory = call->slots[i].memory;

        if (!memory) {
                PyErr_SetString(PyExc_RuntimeError, "the result was taken before");
                return NULL;
        }
        call->slots[i].memory = NULL;
        return sl_array_of_memory(call->core, memory, tensor->bytes, call->handle->ports[i].dtype,
                shape ? shape->rank : tensor->rank, shape ? shape->dims : tensor->dims);
}

static PyObject *output(struct call *call, uint32_t number)
{
        const struct starling_completion *completion = &call->completion;
        const struct starling_shape *shape = completion->n_outputs == call->n_outputs ? &completion->outputs[number] : NULL;
        uint32_t i = call->n_inputs + number;

        if (is_unwanted(call, i))
                return Py_NewRef(Py_None);
        return call->slots[i].array ? given_output(call, i, shape) : own_output(call, i, shape);
}

static PyObject *outputs_by_name(struct call *call)
{
        PyObject *result = PyDict_New();

        for (uint32_t i = 0; result && i < call->n_outputs; i++) {
                PyObject *array = output(call, i);

                if (!array || PyDict_SetItem(result, call->handle->ports[call->n_inputs + i].name, array) < 0)
                        Py_CLEAR(result);
                Py_XDECREF(array);
        }
        return result;
}

/* Who keeps the call, as a future does, does not keep its inputs. */
static void let_inputs_go(struct call *call)
{
        for (uint32_t i = 0; i < call->n_inputs; i++) {
                if (call->slots[i].memory)
                        sl_core_free(call->core, call->slots[i].memory);
                call->slots[i].memory = NULL;
                Py_CLEAR(call->slots[i].array);
        }
}

PyObject *sl_call_result(struct call *call)
{
        if (!call->is_done) {
                PyErr_SetString(PyExc_RuntimeError, "the request is not done");
                return NULL;
        }
        if (call->completion.status != -EMSGSIZE) /* which may go again, see sl_call_grow() */
                let_inputs_go(call);
        if (call->completion.status < 0)
                return raise_failure(call);
        return call->n_outputs == 1 ? output(call, 0) : outputs_by_name(call);
}

void sl_call_note_answer(struct call *call, const struct starling_queue *queue, const struct starling_completion *completion)
{
        struct starling_answer answer;

        PyMem_Free((void *)call->answer.variant);
        call->answer.variant = NULL;
        if (call->state->library.completion_variant(queue, completion, &answer) < 0)
                return;
        char *name = PyMem_Malloc(strlen(answer.variant) + 1);
        if (!name)
                return;
        answer.variant = strcpy(name, answer.variant);
        call->answer = answer;
}

void sl_call_note_members(struct call *call, const struct starling_queue *queue, const struct starling_completion *completion)
{
        if (call->state->library.completion_members(queue, completion, &call->members) < 0)
                call->members = (struct starling_members){0};
}

/* ---- the type ---- */

static PyObject *call_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
        struct state *state = PyType_GetModuleState(type);
        struct core *core;
        struct handle *handle;
        struct wish wish;
        int r;
        (void)keywords;

        if (!state || !PyArg_ParseTuple(args, "O!O!OOOOO:Call", state->core, &core, state->handle, &handle, &wish.inputs,
                              &wish.outputs, &wish.timeout, &wish.priority, &wish.session))
                return NULL;

        struct call *call = sl_call_new(core, handle, &wish);

        if (!call)
                return NULL;
        Py_BEGIN_ALLOW_THREADS r = sl_call_place(call);
        Py_END_ALLOW_THREADS sl_call_placed(call);
        if (r < 0) {
                sl_call_raise_place(call, r);
                Py_CLEAR(call);
        }
        return (PyObject *)call;
}

static void free_slots(struct call *call)
{
        sl_call_placed(call);
        for (uint32_t i = 0; i < call->n_inputs + call->n_outputs; i++) {
                if (call->slots[i].memory)
                        sl_core_free(call->core, call->slots[i].memory);
                Py_XDECREF(call->slots[i].array);
        }
}

static void call_dealloc(PyObject *self)
{
        struct call *call = (struct call *)self;

        PyObject_GC_UnTrack(self);
        if (call->slots)
                free_slots(call);
        PyMem_Free((void *)call->answer.variant);
        Py_XDECREF(call->note);
        sl_drop(call->handle);
        sl_drop(call->core);
        sl_object_free(self);
}

static int call_traverse(PyObject *self, visitproc visit, void *arg)
{
        struct call *call = (struct call *)self;

        Py_VISIT(Py_TYPE(self));
        Py_VISIT(call->note);
        Py_VISIT((PyObject *)call->handle);
        for (uint32_t i = 0; call->slots && i < call->n_inputs + call->n_outputs; i++)
                Py_VISIT(call->slots[i].array);
        return 0;
}

static int call_clear(PyObject *self)
{
        Py_CLEAR(((struct call *)self)->note);
        return 0;
}

static PyObject *call_get_times(PyObject *self, void *unused)
{
        const struct call *call = (struct call *)self;
        const struct starling_completion *done = &call->completion;
        (void)unused;

        if (!call->is_done)
                Py_RETURN_NONE;
        return PyObject_CallFunction(call->state->times, "KKKK", (unsigned long long)done->queued_ns,
                (unsigned long long)done->batched_ns, (unsigned long long)done->computing_ns,
                (unsigned long long)done->combining_ns);
}

static PyObject *call_get_members(PyObject *self, void *unused)
{
        const struct call *call = (const struct call *)self;
        (void)unused;

        if (!call->members.any)
                Py_RETURN_NONE;
        return PyObject_CallFunction(
                call->state->members, "KK", (unsigned long long)call->members.any, (unsigned long long)call->members.all);
}

static PyObject *call_get_answer(PyObject *self, void *unused)
{
        const struct call *call = (struct call *)self;
        (void)unused;

        if (!call->answer.variant)
                Py_RETURN_NONE;
        return PyObject_CallFunction(call->state->answer, "sdIIK", call->answer.variant, call->answer.accuracy,
                (unsigned)call->answer.met, (unsigned)call->answer.tries, (unsigned long long)call->answer.expected_ns);
}

static PyObject *call_get_model(PyObject *self, void *unused)
{
        (void)unused;
        return Py_NewRef((PyObject *)((struct call *)self)->handle);
}

static PyObject *call_result(PyObject *self, PyObject *unused)
{
        (void)unused;
        return sl_call_result((struct call *)self);
}

/* The new memory is taken here, so that a line may submit the call again at once. */
static PyObject *call_grow(PyObject *self, PyObject *error)
{
        struct call *call = (struct call *)self;
        PyObject *needed = PyObject_GetAttrString(error, "bytes_needed");
        uint64_t bytes = needed ? PyLong_AsUnsignedLongLong(needed) : 0;
        int r;

        Py_XDECREF(needed);
        if (PyErr_Occurred())
                return NULL;
        if (!sl_call_grow(call, bytes))
                Py_RETURN_FALSE;
        Py_BEGIN_ALLOW_THREADS r = sl_call_place(call);
        Py_END_ALLOW_THREADS return r < 0 ? sl_call_raise_place(call, r) : Py_NewRef(Py_True);
}

static PyMethodDef call_methods[] = {
        {"result", call_result, METH_O, "result(completion): the outputs, or raises what the status says."},
        {"grow", call_grow, METH_O, "grow(error): after TooSmall, gives the first output that lacks room what it needs."},
        {NULL, NULL, 0, NULL},
};

static PyGetSetDef call_properties[] = {
        {"model", call_get_model, NULL, "the Model", NULL},
        {"times", call_get_times, NULL, "starling.request.Times, None before it is done.", NULL},
        {"members", call_get_members, NULL, "starling.request.Members of an ensemble's result, None before it is done.", NULL},
        {"answer", call_get_answer, NULL, "starling.request.Answer of a query, None before it is done.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot call_slots[] = {
        {Py_tp_doc, (void *)"Call(core, model, inputs, outputs, timeout, priority, session): one request."},
        {Py_tp_new, call_new},
        {Py_tp_dealloc, call_dealloc},
        {Py_tp_traverse, call_traverse},
        {Py_tp_clear, call_clear},
        {Py_tp_methods, call_methods},
        {Py_tp_getset, call_properties},
        {0, NULL},
};

PyType_Spec sl_call_spec = {.name = "starling._native.Call",
        .basicsize = sizeof(struct call),
        .itemsize = sizeof(struct starling_tensor) + sizeof(struct slot),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
        .slots = call_slots};
