/* SPDX-License-Identifier: Apache-2.0 */
/*
 * USDT probes at the stages of a request: places in the program that perf, bpftrace, gdb and SystemTap can stop at or count. Each
 * is one nop and a note in the section .note.stapsdt, which says where it is and where its arguments lie; nobody who does not ask
 * for it pays more. Listed in starling-probes(7), which comes from this table.
 *
 * A probe is in the table, or it does not compile; that each of the table is in the program is a test (tests/tools/probes.sh).
 */
#pragma once

#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#define SL_PROBES(X)                                                                                                               \
        /* name              arguments                                   when */                                                   \
        X(request_accepted, "client, queue, index, samples, model", "an entry became a request, which waits for its turn")         \
        X(request_parked, "client, queue, index, samples, model", "it waits until a model is compiled for its sizes")              \
        X(request_refused, "client, queue, index, status", "an entry became none")                                                 \
        X(segment_broadcast, "client, queue, index, segment, samples",                                                             \
                "a part of a request had its turn: it waits for a worker of each member")                                          \
        X(job_given, "model, executor, segment, pieces, samples",                                                                  \
                "a worker has a job: pieces of one segment or of several; the number is that of the first")                        \
        X(batch_started, "segment, pieces, samples", "a worker begins to compute; in its own thread, or process")                  \
        X(batch_ended, "segment, pieces, status, ns", "it has computed for so long")                                               \
        X(segment_combined, "segment, samples, members",                                                                           \
                "the last prediction of a segment was there, and all were combined; in the worker's thread")                       \
        X(piece_answered, "client, queue, index, model, samples, status",                                                          \
                "the dispatcher has heard of what a worker computed for a request")                                                \
        X(request_completed, "client, queue, index, status, ns",                                                                   \
                "the answer is in the completion ring, so long after the entry was taken")                                         \
        X(client_woken, "client, queue", "a client that sleeps is woken for what it has got")

#define SL_PROBE_PROVIDER "starling"

enum sl_probe_name {
#define X(name, arguments, when) SL_PROBE_##name,
        SL_PROBES(X)
#undef X
                SL_PROBES_N
};

/* SL_PROBE(client_woken, client, queue): arguments are numbers, or texts that end. */
#define SL_PROBE(name, ...)                                                                                                        \
        do {                                                                                                                       \
                (void)SL_PROBE_##name;                                                                                             \
                STAP_PROBEV(starling, name, __VA_ARGS__);                                                                          \
        } while (0)
