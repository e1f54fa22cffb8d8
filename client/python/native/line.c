/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <errno.h>

struct line *sl_line_new(struct core *core)
{
        struct state *state = core->state;
        struct starling_queue *queue;
        struct starling_error error;
        int status;

        Py_BEGIN_ALLOW_THREADS status = state->library.queue_open(core->client, &queue, &error);
        Py_END_ALLOW_THREADS if (status < 0) return (struct line *)sl_raise(state, status, error.text, 0);

        struct line *line = (struct line *)PyType_GenericAlloc(state->line, 0);

        if (!line) {
                state->library.queue_close(queue);
                return NULL;
        }
        line->state = state;
        line->core = sl_keep(core);
        line->queue = queue;
        return line;
}

void sl_line_hold(struct line *line, struct call *call)
{
        sl_keep(call);
        call->is_done = false;
        call->before = NULL;
        call->next = line->flying;
        if (call->next)
                call->next->before = call;
        line->flying = call;
        line->in_flight++;
}

struct call *sl_line_release(struct line *line, struct call *call)
{
        if (call->before)
                call->before->next = call->next;
        else
                line->flying = call->next;
        if (call->next)
                call->next->before = call->before;
        call->next = NULL;
        call->before = NULL;
        line->in_flight--;
        return call;
}

struct call *sl_line_land(struct line *line, const struct starling_completion *completion)
{
        struct call *call = (struct call *)(uintptr_t)completion->user_data;

        call->completion = *completion;
        call->is_done = true;
        if (call->handle->asks)
                sl_call_note_answer(call, line->queue, completion);
        if (call->handle->combines)
                sl_call_note_members(call, line->queue, completion);
        return sl_line_release(line, call);
}

PyObject *sl_line_raise_submit(const struct line *line, int status)
{
        const char *text = line->state->library.queue_error(line->queue);

        return text[0] ? sl_raise(line->state, status, text, 0) : sl_raise_status(line->state, status);
}

static void drop_all(struct line *line)
{
        while (line->flying)
                sl_drop(sl_line_release(line, line->flying));
}

void sl_line_close(struct line *line)
{
        if (line->is_closed)
                return;
        line->is_closed = true;
        Py_BEGIN_ALLOW_THREADS line->state->library.queue_close(line->queue);
        Py_END_ALLOW_THREADS drop_all(line);
}

/* ---- methods ---- */

static int refuse_closed(const struct line *line)
{
        if (line->is_closed)
                sl_raise(line->state, -EPIPE, "the client is closed", 0);
        return line->is_closed ? -1 : 0;
}

static PyObject *line_submit(PyObject *self, PyObject *args)
{
        struct line *line = (struct line *)self;
        struct call *call;
        PyObject *note = Py_None;

        if (!PyArg_ParseTuple(args, "O!|O:submit", line->state->call, &call, &note) || refuse_closed(line) < 0)
                return NULL;
        if (call->next || call->before || line->flying == call) {
                PyErr_SetString(PyExc_ValueError, "the call is in flight");
                return NULL;
        }
        sl_line_hold(line, call);

        int status = line->state->library.submit(line->queue, &call->request, &call->id);

        if (status < 0) {
                sl_drop(sl_line_release(line, call));
                return sl_line_raise_submit(line, status);
        }
        call->note = Py_NewRef(note); /* none is left of an earlier flight: see landed() */
        Py_RETURN_NONE;
}

static PyObject *line_cancel(PyObject *self, PyObject *call)
{
        struct line *line = (struct line *)self;

        if (!Py_IS_TYPE(call, line->state->call)) {
                PyErr_SetString(PyExc_TypeError, "cancel() wants a Call");
                return NULL;
        }
        return PyBool_FromLong(!line->is_closed && line->state->library.cancel(line->queue, ((struct call *)call)->id) == 0);
}

static PyObject *line_cancel_all(PyObject *self, PyObject *unused)
{
        struct line *line = (struct line *)self;
        (void)unused;

        for (struct call *call = line->flying; call && !line->is_closed; call = call->next)
                line->state->library.cancel(line->queue, call->id);
        Py_RETURN_NONE;
}

static struct call *find_noted(struct line *line)
{
        struct call *call = line->flying;

        while (call && !call->note)
                call = call->next;
        return call;
}

static PyObject *line_abandon(PyObject *self, PyObject *unused)
{
        struct line *line = (struct line *)self;

        for (struct call *call; (call = find_noted(line));)
                Py_CLEAR(call->note); /* which may run anything */
        return line_cancel_all(self, unused);
}

/* (call, note, None), as the ctypes form has its completion there. Takes @call. */
static PyObject *landed(struct call *call)
{
        PyObject *note = call->note ? call->note : Py_NewRef(Py_None);
        PyObject *entry = PyTuple_Pack(3, call, note, Py_None);

        call->note = NULL;
        Py_DECREF(note);
        sl_drop(call);
        return entry;
}

/* To the list @into, which whoever is interrupted finds again. */
static PyObject *hand_out(struct line *line, const struct starling_completion *completions, int n, PyObject *into)
{
        int r = 0;

        for (int i = 0; i < n; i++) {
                PyObject *entry = landed(sl_line_land(line, &completions[i]));

                r |= entry ? PyList_Append(into, entry) : -1;
                Py_XDECREF(entry);
        }
        return r < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *line_poll(PyObject *self, PyObject *into)
{
        struct line *line = (struct line *)self;
        struct starling_completion completions[SL_REAP_MAX];
        int n = 0;

        if (!PyList_Check(into)) {
                PyErr_SetString(PyExc_TypeError, "poll() wants a list");
                return NULL;
        }
        if (!line->is_closed)
                n = line->state->library.poll(line->queue, completions, SL_REAP_MAX);
        return hand_out(line, completions, n, into);
}

static PyObject *line_wait(PyObject *self, PyObject *args)
{
        struct line *line = (struct line *)self;
        struct starling_completion completions[SL_REAP_MAX];
        unsigned long long timeout_ns;
        PyObject *into;
        int n = 0;

        if (!PyArg_ParseTuple(args, "KO!:wait", &timeout_ns, &PyList_Type, &into))
                return NULL;
        if (!line->is_closed) {
                Py_BEGIN_ALLOW_THREADS n = line->state->library.wait(line->queue, completions, SL_REAP_MAX, timeout_ns);
                Py_END_ALLOW_THREADS
        }
        return hand_out(line, completions, n, into);
}

static PyObject *line_fd(PyObject *self, PyObject *unused)
{
        struct line *line = (struct line *)self;
        char text[STARLING_TEXT_BYTES];
        (void)unused;

        if (refuse_closed(line) < 0)
                return NULL;

        int fd = line->state->library.queue_fd(line->queue);

        if (fd >= 0)
                return PyLong_FromLong(fd);
        PyOS_snprintf(text, sizeof(text), "no descriptor for the event loop: %s", line->state->library.strerror(fd));
        return sl_raise(line->state, fd, text, 0);
}

static PyObject *line_arm(PyObject *self, PyObject *unused)
{
        struct line *line = (struct line *)self;
        (void)unused;

        return PyBool_FromLong(line->is_closed || line->state->library.queue_arm(line->queue) == 0);
}

static PyObject *line_close(PyObject *self, PyObject *unused)
{
        (void)unused;
        sl_line_close((struct line *)self);
        Py_RETURN_NONE;
}

/* ---- the type ---- */

static int line_traverse(PyObject *self, visitproc visit, void *arg)
{
        Py_VISIT(Py_TYPE(self));
        for (struct call *call = ((struct line *)self)->flying; call; call = call->next)
                Py_VISIT(call);
        return 0;
}

static int line_clear(PyObject *self)
{
        sl_line_close((struct line *)self);
        return 0;
}

static void line_dealloc(PyObject *self)
{
        struct line *line = (struct line *)self;

        PyObject_GC_UnTrack(self);
        if (line->in_flight > 0)
                sl_line_close(line);
        Py_XDECREF(line->lease);
        sl_drop(line->core);
        sl_object_free(self);
}

static PyMethodDef line_methods[] = {
        {"submit", line_submit, METH_VARARGS,
                "submit(call, note=None): raises what the library refuses; Busy when the queue pair is full."},
        {"cancel", line_cancel, METH_O, "cancel(call): True when it was asked for."},
        {"cancel_all", line_cancel_all, METH_NOARGS, "Asks for an early end of all that is in flight."},
        {"abandon", line_abandon, METH_NOARGS, "Cancels what is in flight and is not waited for any more."},
        {"poll", line_poll, METH_O, "poll(into): appends what has completed to a list, as (call, note, completion)."},
        {"wait", line_wait, METH_VARARGS, "wait(timeout_ns, into): as poll(), and waits for the first."},
        {"fd", line_fd, METH_NOARGS, "The descriptor for event loops."},
        {"arm", line_arm, METH_NOARGS,
                "True when the descriptor will tell, and of a closed line; False when there is something to reap already."},
        {"close", line_close, METH_NOARGS, "Cancels what is in flight and waits until the runtime has let go of its memory."},
        {NULL, NULL, 0, NULL},
};

static PyMemberDef line_members[] = {
        {"in_flight", T_UINT, offsetof(struct line, in_flight), READONLY, "calls in flight"},
        {NULL, 0, 0, 0, NULL},
};

static PyType_Slot line_slots[] = {
        {Py_tp_doc, (void *)"One queue pair and the calls that are in flight on it; from Pool.borrow()."},
        {Py_tp_dealloc, line_dealloc},
        {Py_tp_traverse, line_traverse},
        {Py_tp_clear, line_clear},
        {Py_tp_methods, line_methods},
        {Py_tp_members, line_members},
        {0, NULL},
};

PyType_Spec sl_line_spec = {.name = "starling._native.Line",
        .basicsize = sizeof(struct line),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = line_slots};
