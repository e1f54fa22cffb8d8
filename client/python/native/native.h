/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extension module starling._native: the way of a request (check, submit, wait, result) below the Python package, which has the
 * same in Python over ctypes. Stable ABI of CPython 3.11: one file for that version and all later ones.
 *
 *     library.c   the calls of libstarling
 *     core.c      Core, the client's handle; Block, memory of the arena that arrays lie in
 *     bell.c      sleeping until another thread has changed something
 *     gate.c      Gate: calls pass side by side, a reconnect alone
 *     handle.c    Handle, what requests need of a Model
 *     call.c      Call: a request, its arrays, its result
 *     line.c      Line: a queue pair and the calls in flight on it
 *     pool.c      Pool: the lines of one client, and infer()
 *     module.c    the module and its state
 *
 * Threads: all objects belong to who holds the interpreter lock. It is given up while memory is taken and filled and while the
 * library waits; what is touched meanwhile (a call that is being placed, a lent line's queue pair) is its one thread's own.
 *
 * What is unusual is left to Python: an input that is no array of the right type, a refusal's words, an exception's class. Those
 * are functions of the package that the ctypes form calls as well, so that both say the same.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <structmember.h>

#include "library.h"

#include <stdbool.h>

/* Functions, classes and names that the module uses; all are strong references. */
struct state {
        struct library library; /* opened by the first Core */
        PyTypeObject *core, *block, *gate, *handle, *call, *line, *pool;
        PyObject *ndarray;  /* numpy.ndarray */
        PyObject *error_of; /* of starling.errors */
        PyObject *arrange;  /* this and the next line: of starling.request */
        PyObject *placed_input, *shown_output, *shaped, *nanoseconds, *number, *times, *answer, *members;
        PyObject *changed;             /* of starling.request */
        PyObject *base, *dtype, *find; /* attributes of arrays, and the client's method, as interned strings */
};

/* Raises the class of @status with @text. Return: NULL. */
PyObject *sl_raise(struct state *state, int status, const char *text, uint64_t bytes_needed);

/* Raises it with the library's words for the status. Return: NULL. */
PyObject *sl_raise_status(struct state *state, int status);

/* Py_NewRef() and Py_XDECREF() for the module's own structs. */
static inline void *sl_keep(void *object)
{
        return Py_NewRef((PyObject *)object);
}

static inline void sl_drop(void *object)
{
        Py_XDECREF((PyObject *)object);
}

/* The end of a tp_dealloc: frees the object and lets its type go. */
void sl_object_free(PyObject *self);
