/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool: the lines of one client, opened as needed, as many as the client has queue pairs; and infer(), the way of a request in one
 * piece. As starling.line.Pool.
 *
 *     infer   Call  ->  a line is borrowed  ->  [ placed, submitted, waited for ]  ->  result  ->  the line goes back
 *
 * What is in brackets runs without the interpreter lock, which is given up once for all of it. It is taken again for the
 * completion, and every tenth of a second for a client that is being closed, for a reconnect that waits at the gate, and for
 * signals, whose handlers run outside the gate.
 */
#pragma once

#include "gate.h"
#include "line.h"

/* A thread that waits for a line, on its stack; in the order of their coming. */
struct waiter {
        struct waiter *next;
        uint64_t since_ns, looked_ns;
        bool is_away; /* in a signal's handler, or in what else it does meanwhile: the next one goes first */
};

struct pool {
        PyObject ob_base;
        struct state *state;
        struct core *core;
        struct gate *gate;
        PyObject *models;    /* dict: name -> Model, the client's */
        PyObject *all;       /* list of Line */
        PyObject *spare;     /* of these, who is not lent */
        struct bell changed; /* a line came back, or the pool was closed */
        struct waiter *waiters;
        uint32_t n_lines, lines_max; /* that are open or being opened; at most */
        uint32_t inferring;          /* threads inside infer() and the gate that have a line */
        long pid;
        bool is_closed;
};

extern PyType_Spec sl_pool_spec;
