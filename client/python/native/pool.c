/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <errno.h>
#include <unistd.h>

#define WAIT_SLICE_NS  100000000u
#define CLOSE_SLICES   50           /* for a runtime that lives but does not answer */
#define CLOSE_LIMIT_NS 10000000000u /* twice as long as that */

/*
 * Whoever gives a line back has the interpreter lock, and takes the line again before anybody who waits for it runs. It may: one
 * hand-over costs as much as many requests. But not when the first of them has waited for so long.
 */
#define PASS_BY_NS 1000000u

/* ---- lines ---- */

static PyObject *refuse_closed(const struct pool *pool)
{
        return sl_raise(pool->state, -EPIPE, "the client is closed", 0);
}

/* Others may come meanwhile: it counts before it is there. */
static struct line *open_line(struct pool *pool)
{
        pool->n_lines++;

        struct line *line = NULL;

        if (sl_gate_enter(pool->gate) == 0) {
                line = sl_line_new(pool->core);
                sl_gate_leave(pool->gate);
        }
        if (line && PyList_Append(pool->all, (PyObject *)line) == 0)
                return line;
        pool->n_lines--;
        sl_drop(line);
        return NULL;
}

/* Lines whose leases were forgotten are spare again. */
static int reclaim(struct pool *pool)
{
        int r = 0;

        for (Py_ssize_t i = 0; r == 0 && i < PyList_Size(pool->all); i++) {
                struct line *line = (struct line *)PyList_GetItem(pool->all, i);

                if (!line->lease || PyWeakref_GetObject(line->lease) != Py_None)
                        continue;
                Py_CLEAR(line->lease);
                r = PyList_Append(pool->spare, (PyObject *)line);
        }
        return r;
}

/* Return: 0 with a line or with NULL when all are lent; -1 with an exception. */
static int take_line(struct pool *pool, struct line **ret_line)
{
        Py_ssize_t n = PyList_Size(pool->spare);

        *ret_line = NULL;
        if (pool->is_closed)
                return refuse_closed(pool), -1;
        if (n == 0 && reclaim(pool) < 0)
                return -1;
        n = PyList_Size(pool->spare);
        if (n > 0)
                *ret_line = sl_keep(PyList_GetItem(pool->spare, n - 1));
        if (n > 0)
                return PyList_SetSlice(pool->spare, n - 1, n, NULL);
        if (pool->n_lines == pool->lines_max)
                return 0;
        *ret_line = open_line(pool);
        return *ret_line ? 0 : -1;
}

static struct line *raise_busy(const struct pool *pool)
{
        char text[STARLING_TEXT_BYTES];

        PyOS_snprintf(text, sizeof(text), "all %u queue pairs of this client are in use: see queue_pairs", pool->lines_max);
        return (struct line *)sl_raise(pool->state, -EMFILE, text, 0);
}

static const struct waiter *first_waiter(const struct pool *pool)
{
        const struct waiter *first = pool->waiters;

        while (first && first->is_away)
                first = first->next;
        return first;
}

/* Whoever comes now may go before those that wait. */
static bool may_pass(const struct pool *pool)
{
        const struct waiter *first = first_waiter(pool);

        return !first || pool->state->library.clock_ns() - first->since_ns < PASS_BY_NS;
}

static void join(struct pool *pool, struct waiter *waiter)
{
        struct waiter **at = &pool->waiters;

        *waiter = (struct waiter){.since_ns = pool->state->library.clock_ns()};
        while (*at)
                at = &(*at)->next;
        *at = waiter;
}

/* The next one may find a line, too. */
static void leave_waiters(struct pool *pool, const struct waiter *waiter)
{
        struct waiter **at = &pool->waiters;

        while (*at != waiter)
                at = &(*at)->next;
        *at = waiter->next;
        if (pool->waiters)
                sl_bell_ring(&pool->changed);
}

/* Event loops that were closed meanwhile leave their lines. Now and then. */
static int retire_loops(PyObject *client, struct waiter *own, uint64_t now_ns)
{
        PyObject *done;

        if (client == Py_None || now_ns - own->looked_ns < WAIT_SLICE_NS)
                return 0;
        own->looked_ns = now_ns;
        done = PyObject_CallMethod(client, "_retire_loops", NULL);
        Py_XDECREF(done);
        return done ? 0 : -1;
}

/* Return: 0; -1 with an exception. */
static int wait_for_change(struct pool *pool, PyObject *client, uint64_t deadline_ns, struct waiter *own)
{
        uint64_t now_ns = pool->state->library.clock_ns();
        int r;

        if (deadline_ns && now_ns >= deadline_ns) {
                sl_raise(pool->state, -ETIME,
                        "the deadline passed while all queue pairs of this client were in use: see queue_pairs", 0);
                return -1;
        }
        sl_bell_sleep(&pool->changed, deadline_ns ? deadline_ns - now_ns : WAIT_SLICE_NS);
        own->is_away = true;
        r = PyErr_CheckSignals();
        r = r < 0 ? r : retire_loops(client, own, now_ns);
        own->is_away = false;
        return r;
}

static struct line *wait_for_line(struct pool *pool, PyObject *client, uint64_t deadline_ns)
{
        struct line *line = NULL;
        struct waiter own;
        int r = 0;

        join(pool, &own);
        while (r == 0 && !line) {
                if (first_waiter(pool) == &own || pool->is_closed)
                        r = take_line(pool, &line);
                if (r == 0 && !line)
                        r = wait_for_change(pool, client, deadline_ns, &own);
        }
        leave_waiters(pool, &own);
        return line;
}

/* A line of one's own. Waits for one when all are lent, until @deadline_ns if that is not 0; or raises Busy. @client: or None. */
static struct line *borrow(struct pool *pool, PyObject *client, bool wait, uint64_t deadline_ns)
{
        struct line *line = NULL;

        if (!pool->lines_max)
                return (struct line *)sl_raise_status(pool->state, -EPERM);
        if (may_pass(pool) && take_line(pool, &line) < 0)
                return NULL;
        if (line)
                return line;
        return wait ? wait_for_line(pool, client, deadline_ns) : raise_busy(pool);
}

/* Takes @line. An exception that is set stays as it is. */
static void give_back(struct pool *pool, struct line *line)
{
        PyObject *type, *value, *trace;

        PyErr_Fetch(&type, &value, &trace);
        if (!pool->is_closed && PyList_Append(pool->spare, (PyObject *)line) < 0)
                PyErr_Clear();
        sl_drop(line);
        sl_bell_ring(&pool->changed);
        PyErr_Restore(type, value, trace);
}

/* ---- infer ---- */

struct run {
        struct pool *pool;
        struct line *line;
        struct call *call;
        bool is_submitted;
        bool lacks_room;  /* in the queue pair, for those whose callers gave them up */
        uint32_t closing; /* slices since it was cancelled because the client is being closed */
        int place_status, submit_status;
        int n; /* completions, or why there are none */
        struct starling_completion completions[SL_REAP_MAX];
};

/* Without the interpreter lock. */
static void run_slice(struct run *run)
{
        const struct library *library = &run->pool->state->library;
        struct call *call = run->call;

        run->n = 0;
        if (!run->is_submitted) {
                run->place_status = sl_call_place(call);
                if (run->place_status < 0)
                        return;
                run->submit_status = library->submit(run->line->queue, &call->request, &call->id);
                run->is_submitted = run->submit_status == 0;
                run->lacks_room = run->submit_status == -EAGAIN && run->line->in_flight > 1;
                if (!run->is_submitted && !run->lacks_room)
                        return;
        }
        run->n = library->wait(run->line->queue, run->completions, SL_REAP_MAX, WAIT_SLICE_NS);
}

/* Lands what has come; the others' were given up by their callers. True when the call itself is among them. */
static bool land_all(struct run *run)
{
        bool own = false;

        for (int i = 0; i < run->n; i++) {
                struct call *call = sl_line_land(run->line, &run->completions[i]);

                own |= call == run->call;
                sl_drop(call);
        }
        return own;
}

/* The line may have been closed while this thread was outside. Return: 0 inside the gate; -1 with an exception, outside. */
static int enter(const struct run *run)
{
        struct pool *pool = run->pool;

        if (sl_gate_enter(pool->gate) < 0)
                return -1;
        if (run->line->is_closed) {
                sl_gate_leave(pool->gate);
                return sl_raise_status(pool->state, -ECANCELED), -1;
        }
        pool->inferring++;
        return 0;
}

static void leave(const struct run *run)
{
        run->pool->inferring--;
        sl_gate_leave(run->pool->gate);
}

/* Lets a reconnect pass that waits for its turn, and handlers of signals, which may close the client. Return: as enter(). */
static int pass(const struct run *run)
{
        leave(run);
        return PyErr_CheckSignals() < 0 ? -1 : enter(run);
}

static int raise_unsubmitted(const struct run *run)
{
        if (run->place_status < 0)
                sl_call_raise_place(run->call, run->place_status);
        else
                sl_line_raise_submit(run->line, run->submit_status);
        return -1;
}

/* What ends it without a completion. Return: 0 it goes on; -1 with an exception. */
static int look_for_end(struct run *run)
{
        struct pool *pool = run->pool;

        if (!run->is_submitted && (run->place_status < 0 || !run->lacks_room))
                return raise_unsubmitted(run);
        if (run->n == -EPIPE || run->n == -ENODATA || run->n == -ECHILD) /* what comes no more cannot be waited for */
                return sl_raise_status(pool->state, run->n == -ENODATA ? -EPIPE : run->n), -1;
        if (!pool->is_closed)
                return 0;
        if (run->is_submitted && run->closing++ == 0)
                pool->state->library.cancel(run->line->queue, run->call->id);
        return run->is_submitted && run->closing <= CLOSE_SLICES ? 0 : (sl_raise_status(pool->state, -ECANCELED), -1);
}

static int check_end(struct run *run)
{
        int r = look_for_end(run);

        if (r < 0)
                leave(run);
        return r;
}

/* Outside the gate. What is in flight the line holds on, until its completion has come or the line is closed. */
static void give_up(const struct run *run)
{
        if (run->line->is_closed)
                return;
        if (!run->is_submitted)
                sl_drop(sl_line_release(run->line, run->call));
        else if (!run->pool->gate->is_shut)
                run->pool->state->library.cancel(run->line->queue, run->call->id);
}

/* One submission and its completion; inside the gate. Return: 0 it is done; -1 with an exception, and outside. */
static int run_once(struct run *run)
{
        run->is_submitted = false;
        sl_line_hold(run->line, run->call);
        do {
                Py_BEGIN_ALLOW_THREADS run_slice(run);
                Py_END_ALLOW_THREADS sl_call_placed(run->call);
                if (land_all(run))
                        return 0;
        } while (check_end(run) == 0 && pass(run) == 0);
        give_up(run);
        return -1;
}

/* Again with more room, as long as the runtime asks for more. As run_once(). */
static int run_to_end(struct run *run)
{
        int r;

        do
                r = run_once(run);
        while (r == 0 && run->call->completion.status == -EMSGSIZE && sl_call_grow(run->call, run->call->completion.bytes_needed));
        return r;
}

static PyObject *run_on_line(struct pool *pool, struct call *call, struct line *line)
{
        struct run run = {.pool = pool, .line = line, .call = call};
        PyObject *result = NULL;

        if (enter(&run) == 0 && run_to_end(&run) == 0) {
                result = sl_call_result(call);
                leave(&run);
        }
        give_back(pool, line);
        return result;
}

static struct call *make_call(struct pool *pool, struct handle *handle, const struct wish *wish)
{
        if (sl_gate_enter(pool->gate) < 0)
                return NULL;

        struct call *call = sl_call_new(pool->core, handle, wish);

        sl_gate_leave(pool->gate);
        return call;
}

/* The Model itself, or the one that is kept under a name; else what the client finds anew. */
static PyObject *find_model(const struct pool *pool, PyObject *client, PyObject *model)
{
        struct state *state = pool->state;

        PyObject *kept = PyObject_TypeCheck(model, state->handle) ? model : PyDict_GetItemWithError(pool->models, model);

        if (kept && PyObject_TypeCheck(kept, state->handle) && !((struct handle *)kept)->stale)
                return Py_NewRef(kept);
        if (PyErr_Occurred())
                return NULL;

        PyObject *found = PyObject_CallMethodObjArgs(client, state->find, model, NULL);

        if (found && !PyObject_TypeCheck(found, state->handle)) {
                PyErr_SetString(PyExc_TypeError, "_find() returned no Model");
                Py_CLEAR(found);
        }
        return found;
}

static PyObject *infer(struct pool *pool, PyObject *client, PyObject *model, const struct wish *wish)
{
        struct handle *handle = (struct handle *)find_model(pool, client, model);
        struct call *call = handle ? make_call(pool, handle, wish) : NULL;
        struct line *line = call ? borrow(pool, client, true, call->request.deadline_ns) : NULL;
        PyObject *result = line ? run_on_line(pool, call, line) : NULL;

        sl_drop(call);
        sl_drop(handle);
        return result;
}

static PyObject *pool_infer(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
        struct pool *pool = (struct pool *)self;

        if (n != 7) {
                PyErr_SetString(PyExc_TypeError, "infer(client, model, inputs, outputs, timeout, priority, session)");
                return NULL;
        }
        if (getpid() != pool->pid)
                return sl_raise_status(pool->state, -ECHILD);
        if (pool->is_closed)
                return refuse_closed(pool);

        struct wish wish = {.inputs = args[2], .outputs = args[3], .timeout = args[4], .priority = args[5], .session = args[6]};

        return infer(pool, args[0], args[1], &wish);
}

/* ---- methods ---- */

/* The lease says who has the line before any exception can lose it. */
static PyObject *pool_borrow(PyObject *self, PyObject *args, PyObject *keywords)
{
        static char *names[] = {"lease", "wait", "client", NULL};
        struct pool *pool = (struct pool *)self;
        PyObject *lease, *client = Py_None;
        int wait = 1;

        if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|pO:borrow", names, &lease, &wait, &client))
                return NULL;

        PyObject *reference = PyWeakref_NewRef(lease, NULL);
        struct line *line = reference ? borrow(pool, client, wait, 0) : NULL;

        if (line && PyObject_SetAttrString(lease, "line", (PyObject *)line) < 0) {
                give_back(pool, line);
                line = NULL;
        }
        if (line)
                line->lease = Py_NewRef(reference);
        Py_XDECREF(reference);
        return (PyObject *)line;
}

static PyObject *pool_give_back(PyObject *self, PyObject *lease)
{
        struct pool *pool = (struct pool *)self;
        PyObject *line = PyObject_GetAttrString(lease, "line");

        if (!line || PyObject_SetAttrString(lease, "line", Py_None) < 0) {
                Py_XDECREF(line);
                return NULL;
        }
        if (Py_IS_TYPE(line, pool->state->line)) {
                Py_CLEAR(((struct line *)line)->lease);
                give_back(pool, (struct line *)line);
        } else {
                Py_DECREF(line);
        }
        Py_RETURN_NONE;
}

/*
 * Threads inside infer() see that the pool is closed, cancel and come back: their queue pairs are theirs until then. Return: 0 they
 * have, and this thread is inside the gate; -1 with an exception, outside.
 */
static int wait_for_all(struct pool *pool)
{
        const struct library *library = &pool->state->library;
        uint64_t start_ns = library->clock_ns();

        while (pool->gate->is_shut || (pool->inferring > 0 && library->clock_ns() - start_ns < CLOSE_LIMIT_NS)) {
                if (pool->gate->is_shut)
                        start_ns = library->clock_ns(); /* whoever is alone keeps them from coming back */
                if (sl_bell_wait(pool->gate->is_shut ? &pool->gate->changed : &pool->changed) < 0)
                        return -1;
        }
        return sl_gate_enter(pool->gate);
}

static PyObject *pool_close(PyObject *self, PyObject *unused)
{
        struct pool *pool = (struct pool *)self;
        PyObject *lines;
        (void)unused;

        pool->is_closed = true;
        sl_bell_ring(&pool->changed);
        if (wait_for_all(pool) < 0)
                return NULL;
        lines = pool->all;
        pool->all = PyList_New(0);
        for (Py_ssize_t i = 0; i < PyList_Size(lines); i++)
                sl_line_close((struct line *)PyList_GetItem(lines, i));
        sl_gate_leave(pool->gate);
        Py_DECREF(lines);
        return PyList_SetSlice(pool->spare, 0, PyList_Size(pool->spare), NULL) < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- the type ---- */

static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
        struct state *state = PyType_GetModuleState(type);
        PyObject *core, *gate, *models;
        unsigned lines_max;
        (void)keywords;

        if (!state ||
                !PyArg_ParseTuple(args, "O!O!IO!:Pool", state->core, &core, state->gate, &gate, &lines_max, &PyDict_Type, &models))
                return NULL;

        struct pool *pool = (struct pool *)PyType_GenericAlloc(type, 0);

        if (!pool)
                return NULL;
        pool->state = state;
        pool->core = sl_keep(core);
        pool->gate = sl_keep(gate);
        pool->models = Py_NewRef(models);
        pool->lines_max = (uint32_t)lines_max;
        pool->pid = getpid();
        sl_bell_init(&pool->changed);
        pool->all = PyList_New(0);
        pool->spare = PyList_New(0);
        if (!pool->all || !pool->spare)
                Py_CLEAR(pool);
        return (PyObject *)pool;
}

static int pool_traverse(PyObject *self, visitproc visit, void *arg)
{
        struct pool *pool = (struct pool *)self;

        Py_VISIT(Py_TYPE(self));
        Py_VISIT(pool->models);
        Py_VISIT(pool->all);
        Py_VISIT(pool->spare);
        return 0;
}

/* Nobody is inside any more: lists and dict are cleared of themselves. */
static int pool_clear(PyObject *self)
{
        Py_CLEAR(((struct pool *)self)->models);
        return 0;
}

static void pool_dealloc(PyObject *self)
{
        struct pool *pool = (struct pool *)self;

        PyObject_GC_UnTrack(self);
        sl_bell_deinit(&pool->changed);
        Py_XDECREF(pool->models);
        Py_XDECREF(pool->all);
        Py_XDECREF(pool->spare);
        sl_drop(pool->gate);
        sl_drop(pool->core);
        sl_object_free(self);
}

static PyMethodDef pool_methods[] = {
        {"infer", (PyCFunction)(void (*)(void))pool_infer, METH_FASTCALL,
                "infer(client, model, inputs, outputs, timeout, priority, session): see Client.infer()."},
        {"borrow", (PyCFunction)(void (*)(void))pool_borrow, METH_VARARGS | METH_KEYWORDS,
                "borrow(lease, wait=True, client=None): a Line for the lease. Waits for one when all are lent, or raises Busy."},
        {"give_back", pool_give_back, METH_O, "give_back(lease): the line of a lease, if it has one."},
        {"close", pool_close, METH_NOARGS, "Ends what is in flight as cancelled, and closes all lines."},
        {NULL, NULL, 0, NULL},
};

static PyType_Slot pool_slots[] = {
        {Py_tp_doc, (void *)"Pool(core, gate, lines_max, models): the lines of one client."},
        {Py_tp_new, pool_new},
        {Py_tp_dealloc, pool_dealloc},
        {Py_tp_traverse, pool_traverse},
        {Py_tp_clear, pool_clear},
        {Py_tp_methods, pool_methods},
        {0, NULL},
};

PyType_Spec sl_pool_spec = {.name = "starling._native.Pool",
        .basicsize = sizeof(struct pool),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
        .slots = pool_slots};
