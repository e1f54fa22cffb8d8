/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line: one queue pair and the calls that are in flight on it. As starling.line.Line.
 *
 * A line is lent to one thread, or event loop, at a time. A call in flight is held by the line until its completion has come: until
 * then its memory is the runtime's. The library hands the call back as the completion's user data, which it keeps to itself.
 */
#pragma once

#include "call.h"

enum { SL_REAP_MAX = 16 };

struct line {
        PyObject ob_base;
        struct state *state;
        struct core *core;
        struct starling_queue *queue;
        PyObject *lease;     /* a weak reference to that of the borrower in Python, which says who has it */
        struct call *flying; /* a list, the newest first */
        uint32_t in_flight;
        bool is_closed;
};

extern PyType_Spec sl_line_spec;

/* Opens a queue pair: a new reference, or NULL with an exception. */
struct line *sl_line_new(struct core *core);

/* The line holds @call from now on. Before it is submitted, as its completion may come at once. */
void sl_line_hold(struct line *line, struct call *call);

/* Its completion has come, or it was not accepted after all. Return: what the line held of it. */
struct call *sl_line_release(struct line *line, struct call *call);

/* After starling_submit() refused. Return: NULL. */
PyObject *sl_line_raise_submit(const struct line *line, int status);

/* Marks it done with what came, and takes it from the line. Return: the call, the caller's now. */
struct call *sl_line_land(struct line *line, const struct starling_completion *completion);

/* Cancels what is in flight and waits until the runtime has let go of its memory. */
void sl_line_close(struct line *line);
