/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call: one request, its arrays, and what its completion means. As starling.call.Call.
 *
 *     sl_call_new()    inputs and outputs are checked, nothing is taken yet
 *     sl_call_place()  memory of the arena is taken and inputs are copied to it; without the interpreter lock
 *     sl_line_...      it is in flight: the line holds it, whatever becomes of who made it
 *     sl_call_result() arrays, or an exception
 *
 * An input lies where the caller has it (its array is kept), or is copied to memory of the call's own. An output is the caller's
 * array, or memory of the call's own that the result takes over.
 */
#pragma once

#include "core.h"
#include "handle.h"

struct slot {
        PyObject *array; /* the caller's, in the arena; NULL otherwise */
        void *memory;    /* of the arena, of the call's own */
        Py_buffer view;  /* of an input until it is copied; view.obj is NULL when there is none */
};

struct call {
        PyVarObject ob_base; /* its size: inputs and outputs together */
        struct state *state;
        struct core *core;
        struct handle *handle;
        PyObject *note;             /* what who submitted it wants to know when it completes, while it is in flight */
        struct call *next, *before; /* of the line's calls in flight */
        uint64_t id;
        bool given; /* the caller chose the outputs */
        bool is_done;
        uint64_t refused_bytes; /* that sl_call_place() could not have */
        uint32_t n_inputs, n_outputs;
        struct slot *slots; /* inputs, then outputs; behind the tensors */
        struct starling_request request;
        struct starling_completion completion;
        struct starling_members members; /* of an ensemble's result that is done; zeros */
        struct starling_answer answer;   /* of a query that is done; its text is the call's own */
        struct starling_tensor tensors[];
};

extern PyType_Spec sl_call_spec;

/* What one request is asked for with, all of them borrowed. */
struct wish {
        PyObject *inputs, *outputs, *timeout, *priority, *session;
};

/* A new reference, or NULL with an exception. */
struct call *sl_call_new(struct core *core, struct handle *handle, const struct wish *wish);

/* Needs no interpreter lock. May be called again for what is not placed yet. Return: 0, -errno. */
int sl_call_place(struct call *call);

/* The inputs are copied: lets go of what they were copied from. */
void sl_call_placed(struct call *call);

/* After sl_call_place() failed. Return: NULL. */
PyObject *sl_call_raise_place(const struct call *call, int status);

/* The outputs as Client.infer() returns them, or NULL with what the status says. While the completion's shapes are valid. */
PyObject *sl_call_result(struct call *call);

/* Of an ensemble: which members took part. Before the next submit of @queue. */
void sl_call_note_members(struct call *call, const struct starling_queue *queue, const struct starling_completion *completion);

/* Of a query: which variant has answered. Before the next submit of @queue. */
void sl_call_note_answer(struct call *call, const struct starling_queue *queue, const struct starling_completion *completion);

/* After -EMSGSIZE, has the first output that lacks room ask for what it needs, as later calls do at once; false when the caller chose
 * the outputs. Under the interpreter lock. */
bool sl_call_grow(struct call *call, uint64_t bytes_needed);
