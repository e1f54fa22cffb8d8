/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merged graph while it is made. A value that the graphs have in common is a *joint* value, named by its number in the first
 * graph. Its K lanes lie in one value, in one form or in several, or apart:
 *
 *     LANE    [K, d0, d1, ...]             K stands in front
 *     axis a  [d0, ..., K * da, ...]       K is folded into axis a, each lane's part in one piece; a >= 1
 *     INNER   [d0, d1 * K, ...]            K is folded into axis 1 behind it: channel c of lane l is channel c * K + l
 *     APART   K values
 *
 * A form is made from another one when somebody asks for it, once. With K before axis a and not folded into it a value is *open* at
 * a: LANE is open at 0, INNER at 2. Private to this folder; one owner thread.
 */
#pragma once

#include "graph.h"
#include "merge/match.h"

#define SL_FORM_LANE  0u
#define SL_FORM_INNER SL_RANK_MAX
#define SL_FORM_APART (SL_RANK_MAX + 1u)
#define SL_FORM_COUNT (SL_RANK_MAX + 2u)

#define SL_WEAVE_TOUCHED_MAX 256

struct sl_weave {
        const struct sl_match *match;
        const struct sl_graph *sizes; /* the first graph, or the same with its batch: where sizes of joint values stand */
        struct sl_graph *graph;       /* what is made */
        uint32_t lanes;
        bool rehearsal;         /* constants get no data, and inputs come from nowhere: sl_weave_rehearse() */
        uint32_t **apart;       /* [lane][value of that lane's graph]: value made; SL_VALUE_NONE */
        uint32_t *forms;        /* [joint value * SL_FORM_APART + form]: likewise */
        uint64_t stacked_bytes; /* of constants that were laid together */
        uint64_t laying_ns;     /* in which they were written */
        uint32_t n_turns;       /* values that were made in another form than their node's */
        struct sl_error *error;
        uint32_t n_touched, touched[SL_WEAVE_TOUCHED_MAX]; /* of a rehearsal: entries of forms */
};

/* Return: 0, -ENOMEM. */
int sl_weave_new(const struct sl_match *match, struct sl_graph *graph, struct sl_error *error, struct sl_weave **ret_weave);
struct sl_weave *sl_weave_free(struct sl_weave *weave);

/* Begins a rehearsal over, in an empty graph of its own. Return: 0, -ENOMEM. */
int sl_weave_rehearse(struct sl_weave *weave);

/* A node that is about to be added. */
struct sl_weave_step {
        uint32_t op, n_inputs, n_outputs; /* outputs: 0 is 1 */
        const char *name;
        struct sl_attrs attrs;
        struct sl_epilogue epilogue;
        uint32_t inputs[SL_NODE_INPUTS_MAX];
};

/* A step with the name, attributes and epilogue of node @node of the first graph. */
struct sl_weave_step sl_weave_step_of(const struct sl_weave *weave, uint32_t node);

/* Adds it and infers its outputs. Return: 0; -ENOTSUP its shapes do not fit (the text is the rule's); -ENOMEM, -E2BIG. */
int sl_weave_add(struct sl_weave *weave, const struct sl_weave_step *step, uint32_t *ret_values);

/* The value seen with other dimensions. What is open in them must be found in the value. Return: as above. */
int sl_weave_reshape(struct sl_weave *weave, uint32_t value, const struct sl_shape *shape, uint32_t *ret_value);

/* The shape of a joint value in a form, and open at @axis. Return: 0; -ENOTSUP it has none: of too many dimensions, or unknown. */
int sl_weave_shape(const struct sl_weave *weave, uint32_t joint, uint32_t form, struct sl_shape *ret_shape);
int sl_weave_open_shape(const struct sl_weave *weave, uint32_t joint, uint32_t axis, struct sl_shape *ret_shape);

/* The joint value in a form that is not APART; open at @axis; and what a node has made of it. Return: as sl_weave_add(). */
int sl_weave_get(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t *ret_value);
int sl_weave_get_open(struct sl_weave *weave, uint32_t joint, uint32_t axis, uint32_t *ret_value);
void sl_weave_set(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t value);

/* Sets what is a view of its LANE, as that; and what is open at @axis, folded. */
int sl_weave_set_lane(struct sl_weave *weave, uint32_t joint, uint32_t value);
int sl_weave_set_open(struct sl_weave *weave, uint32_t joint, uint32_t axis, uint32_t value);

/* All lanes of a joint value apart, each in weave->apart. */
int sl_weave_get_apart(struct sl_weave *weave, uint32_t joint);

/* From one form to another, of which one may be APART, of a rehearsal. */
int sl_weave_turn(struct sl_weave *weave, uint32_t joint, uint32_t from, uint32_t to);

/* Input @input of the common node @node is a constant; the same one in all lanes, and no weight: of integers, or a single element.
 */
bool sl_weave_is_constant(const struct sl_weave *weave, uint32_t node, uint32_t input);
bool sl_weave_is_shared(const struct sl_weave *weave, uint32_t node, uint32_t input);
bool sl_weave_has_input(const struct sl_weave *weave, uint32_t node, uint32_t input);
const struct sl_tensor *sl_weave_input(const struct sl_weave *weave, uint32_t node, uint32_t input);
const struct sl_tensor *sl_weave_output(const struct sl_weave *weave, uint32_t node, uint32_t output);

/* That constant, once. */
int sl_weave_share(struct sl_weave *weave, uint32_t node, uint32_t input, uint32_t *ret_value);

/* How the lanes' constants are laid together. */
struct sl_stack {
        uint32_t form; /* not APART; in INNER behind @axis, which is 0 or 1 */
        uint32_t axis;
        uint32_t rank;   /* with dimensions of 1 in front up to that */
        int64_t repeats; /* of a dimension of 1 at the axis of the form; 0: none */
        bool transposed; /* matrices, in LANE */
};
int sl_weave_stack(struct sl_weave *weave, uint32_t node, uint32_t input, const struct sl_stack *stack, uint32_t *ret_value);

/* The nodes of all lanes, each by itself; and one node of one graph. */
int sl_weave_nodes_apart(struct sl_weave *weave, uint32_t common);
int sl_weave_own_node(struct sl_weave *weave, uint32_t lane, uint32_t node);

/* The ports of all graphs, one after the other: inputs before the first node, outputs behind the last. */
int sl_weave_inputs(struct sl_weave *weave);
int sl_weave_outputs(struct sl_weave *weave);
