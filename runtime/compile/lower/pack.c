/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base_plan.h"
#include "constants.h"
#include "graph.h"
#include "known_splits.h"
#include "lower.h"
#include "placed.h"
#include "placement.h"
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

#define DATA_ALIGNMENT 64

struct choice {
        struct choice *next; /* of the same node */
        const struct choice *next_in_place;
        uint32_t input;
        bool plain;
        const void *source; /* the constant that was packed */
        uint64_t source_bytes;
        struct sl_packed packed;
        void *data;
        uint64_t hash;   /* of data and form */
        uint64_t offset; /* in DATA, of what was made in the plan file */
        bool in_place;   /* in the plan file */
        bool borrowed;   /* the data are another choice's, or the base's */
};

struct sl_packing {
        uint32_t n_nodes;
        struct choice **choices; /* of each node of the source */
        struct sl_placed placed;
        struct sl_target target;
        const struct sl_base_plan *base;
        bool uncut;
        struct sl_known_splits splits;
        const struct choice *in_place; /* all that lie in the plan file, each content once */
        struct sl_node_desc *desc;     /* of the step at hand, with its constants below */
        struct sl_packed packed[SL_NODE_INPUTS_MAX];
        const void *constants[SL_NODE_INPUTS_MAX];
};

SL_DEFINE_CLEANUP(struct sl_packing *, sl_packing_free)

int sl_packing_new(const struct sl_packing_options *options, struct sl_packing **ret_packing)
{
        SL_CLEANUP(sl_cleanup_sl_packing_free) struct sl_packing *packing = calloc(1, sizeof(*packing));

        if (!packing)
                return -ENOMEM;
        packing->n_nodes = options->n_nodes;
        packing->placed.fd = options->fd;
        packing->placed.drafts = options->base != NULL;
        packing->target = options->target;
        packing->base = options->base;
        packing->uncut = options->uncut;
        packing->choices = calloc(options->n_nodes + 1u, sizeof(*packing->choices));
        packing->desc = calloc(1, sizeof(*packing->desc));
        if (!packing->choices || !packing->desc)
                return -ENOMEM;
        *ret_packing = sl_take(packing);
        return 0;
}

static void free_data(const struct sl_packing *packing, struct choice *choice)
{
        if (choice->borrowed)
                return;
        if (choice->in_place)
                sl_placed_unmap(&packing->placed, choice->data, choice->packed.data_bytes);
        else
                free(choice->data);
}

static void free_choices(const struct sl_packing *packing, struct choice *choice)
{
        while (choice) {
                struct choice *next = choice->next;

                free_data(packing, choice);
                free(choice);
                choice = next;
        }
}

struct sl_packing *sl_packing_free(struct sl_packing *packing)
{
        if (!packing)
                return NULL;
        for (uint32_t i = 0; packing->choices && i < packing->n_nodes; i++)
                free_choices(packing, packing->choices[i]);
        sl_placed_deinit(&packing->placed);
        free(packing->choices);
        free(packing->desc);
        free(packing);
        return NULL;
}

static struct choice *find_choice(const struct sl_packing *packing, uint32_t origin, uint32_t input)
{
        struct choice *choice = origin < packing->n_nodes ? packing->choices[origin] : NULL;

        while (choice && choice->input != input)
                choice = choice->next;
        return choice;
}

bool sl_packing_find(const struct sl_packing *packing, uint32_t origin, uint32_t input, struct sl_packed_constant *ret_constant)
{
        const struct choice *choice = find_choice(packing, origin, input);

        if (!choice || choice->plain)
                return false;
        *ret_constant = (struct sl_packed_constant){.packed = &choice->packed,
                .data = choice->data,
                .hash = choice->hash,
                .offset = choice->offset,
                .in_place = choice->in_place};
        return true;
}

uint64_t sl_packing_placed_bytes(const struct sl_packing *packing)
{
        return packing ? packing->placed.end_bytes : 0;
}

/* What is in the plan file stays there, and mapped: others may share it. */
static void stay_plain(struct choice *choice)
{
        choice->plain = true;
        if (!choice->in_place && !choice->borrowed)
                free(sl_take(choice->data));
}

static int allocate_data(struct sl_packing *packing, struct choice *choice)
{
        uint64_t bytes = choice->packed.data_bytes;
        int r = sl_placed_take(&packing->placed, bytes, &choice->data, &choice->offset);

        choice->in_place = r == 0;
        if (r != -ENOTSUP)
                return r;
        choice->data = aligned_alloc(DATA_ALIGNMENT, sl_align_up(bytes, DATA_ALIGNMENT));
        if (!choice->data)
                return -ENOMEM;
        memset(choice->data, 0, bytes);
        return 0;
}

static bool is_same(const struct choice *a, const struct choice *b)
{
        return a->hash == b->hash && a->packed.data_bytes == b->packed.data_bytes && a->packed.form_bytes == b->packed.form_bytes &&
               !memcmp(a->packed.form, b->packed.form, a->packed.form_bytes) && !memcmp(a->data, b->data, a->packed.data_bytes);
}

static void drop_data(struct sl_packing *packing, struct choice *choice)
{
        if (choice->in_place)
                sl_placed_give_back(&packing->placed, choice->data, choice->packed.data_bytes, choice->offset);
        else
                free(choice->data);
}

/* A constant that is in the plan file already is not put there again. */
static void share(struct sl_packing *packing, struct choice *choice)
{
        const struct choice *equal = packing->in_place;

        while (equal && !is_same(equal, choice))
                equal = equal->next_in_place;
        if (!equal) {
                choice->next_in_place = packing->in_place;
                packing->in_place = choice;
                return;
        }
        drop_data(packing, choice);
        choice->data = equal->data;
        choice->offset = equal->offset;
        choice->borrowed = true;
}

/* Nor is one that the base has. */
static bool share_with_base(struct sl_packing *packing, struct choice *choice)
{
        struct sl_base_place place;

        if (!sl_base_plan_find(packing->base, choice->data, choice->packed.data_bytes, &choice->packed, choice->hash, &place))
                return false;
        drop_data(packing, choice);
        choice->data = (void *)sl_base_plan_data(packing->base, &place);
        choice->in_place = false;
        choice->borrowed = true;
        return true;
}

/* Packs the constant, and finds out whether its data are somewhere already. */
static int make_data(struct sl_packing *packing, const struct sl_backend *backend, uint32_t input, const struct sl_value *constant,
        struct choice *choice)
{
        int r = backend->planner->repack(&packing->target, packing->desc, input, &choice->packed, constant->data, choice->data);

        if (r < 0)
                return r;
        choice->hash = sl_constants_hash(choice->data, choice->packed.data_bytes, &choice->packed);
        if (!share_with_base(packing, choice) && choice->in_place)
                share(packing, choice);
        if (!choice->in_place || choice->borrowed)
                return 0;
        return sl_placed_keep(&packing->placed, choice->packed.data_bytes, choice->offset, &choice->data);
}

/* The first size that is walked, the largest, decides. */
static int choose(struct sl_packing *packing, const struct sl_backend *backend, uint32_t origin, uint32_t input,
        const struct sl_value *constant, struct choice **ret_choice)
{
        struct choice *choice = calloc(1, sizeof(*choice));
        int r;

        if (!choice)
                return -ENOMEM;
        choice->input = input;
        choice->source = constant->data;
        choice->source_bytes = constant->data_bytes;
        choice->next = packing->choices[origin];
        packing->choices[origin] = choice;
        *ret_choice = choice;
        r = backend->planner->pack(&packing->target, packing->desc, input, &choice->packed);
        if (r < 0)
                return r;
        choice->plain = !choice->packed.data_bytes;
        if (choice->plain)
                return 0;
        r = allocate_data(packing, choice);
        if (r < 0)
                return r;
        r = make_data(packing, backend, input, constant, choice);
        if (r < 0) {
                drop_data(packing, choice);
                choice->data = NULL;
                choice->in_place = false;
        }
        return r;
}

/* Another size may want it plain, or may have folded other numbers into it. */
static int confirm(const struct sl_packing *packing, const struct sl_backend *backend, const struct sl_value *constant,
        struct choice *choice, bool *ret_again)
{
        bool same = choice->source == constant->data ||
                    (choice->source_bytes == constant->data_bytes && !memcmp(choice->source, constant->data, constant->data_bytes));
        struct sl_packed here;
        int r;

        if (choice->plain)
                return 0;
        r = backend->planner->pack(&packing->target, packing->desc, choice->input, &here);
        if (r < 0)
                return r;
        if (same && here.data_bytes)
                return 0;
        stay_plain(choice);
        *ret_again = true;
        return 0;
}

static int pack_input(struct sl_packing *packing, const struct sl_backend *backend, uint32_t origin, uint32_t input,
        const struct sl_value *constant, bool *ret_again)
{
        struct choice *choice = find_choice(packing, origin, input);
        int r = choice ? confirm(packing, backend, constant, choice, ret_again)
                       : choose(packing, backend, origin, input, constant, &choice);

        if (r < 0)
                return r;
        if (choice->plain)
                return 0;
        packing->packed[input] = choice->packed;
        packing->constants[input] = choice->data;
        return 0;
}

static const struct sl_value *constant_of(const struct sl_placement *placement, const struct sl_schedule *schedule, uint32_t value)
{
        if (value == SL_VALUE_NONE || schedule->storages[value].place != SL_PLACE_CONSTANT)
                return NULL;
        return &placement->graph->values[schedule->storages[value].index];
}

/* The number of the source node among those of all graphs of the model; SL_VALUE_NONE: it stands for none. */
static uint32_t number_of(const struct sl_program *program, const struct sl_step *step)
{
        uint32_t origin = program->placement->origins[step->node];

        return origin == SL_VALUE_NONE ? SL_VALUE_NONE : program->first_node + origin;
}

static int pack_inputs(struct sl_packing *packing, const struct sl_program *program, const struct sl_step *step, bool *ret_again)
{
        const struct sl_node *node = &program->placement->graph->nodes[step->node];
        uint32_t origin = number_of(program, step);

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                const struct sl_value *constant = constant_of(program->placement, program->schedule, node->inputs[i]);
                int r;

                packing->packed[i].data_bytes = 0;
                packing->packed[i].form_bytes = 0;
                packing->constants[i] = constant ? constant->data : NULL;
                if (!constant || origin == SL_VALUE_NONE)
                        continue;
                r = pack_input(packing, step->backend, origin, i, constant, ret_again);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A backend that refuses the shared forms gets plain constants, at this size and then at all. */
static bool give_up_forms(struct sl_packing *packing, uint32_t origin)
{
        bool any = false;

        for (struct choice *choice = origin < packing->n_nodes ? packing->choices[origin] : NULL; choice; choice = choice->next) {
                any = any || !choice->plain;
                stay_plain(choice);
        }
        return any;
}

/* Of a node that is equal to one before only the rest is asked. */
static int provide(struct sl_packing *packing, const struct sl_backend *backend, struct sl_kernel_source *source,
        struct sl_provision *ret_provision, struct sl_error *error)
{
        uint64_t key = source->uncut ? 0 : sl_known_splits_key(backend, source);
        struct sl_provision before;
        bool known = !source->uncut && sl_known_splits_find(&packing->splits, key, &before);
        bool asked = !source->uncut && !known;
        int r;

        source->uncut = !asked;
        r = backend->planner->provide(source, ret_provision, error);
        if (r == 0 && known) {
                memcpy(ret_provision->splits, before.splits, sizeof(before.splits));
                ret_provision->seconds = before.seconds;
        }
        if (r == 0 && asked)
                sl_known_splits_put(&packing->splits, key, ret_provision);
        return r;
}

/* @times: of the node; NULL: nobody has timed it. */
static int try_step(struct sl_packing *packing, struct sl_step *step, const struct sl_part_times *times, struct sl_error *error)
{
        struct sl_kernel_source source = {.node = packing->desc,
                .packed = packing->packed,
                .constants = packing->constants,
                .target = &packing->target,
                .uncut = packing->uncut,
                .times = times};
        struct sl_provision provision;
        int r = provide(packing, step->backend, &source, &provision, error);

        if (r < 0)
                return r;
        step->scratch_bytes = provision.scratch_bytes;
        memcpy(step->splits, provision.splits, sizeof(step->splits));
        step->seconds = provision.seconds;
        free((void *)step->blob.data); /* of a walk before */
        step->blob = (struct sl_blob){.data = provision.blob, .bytes = provision.blob_bytes};
        return 0;
}

static void describe_copy(const struct sl_graph *graph, const struct sl_step *step, struct sl_node_desc *desc)
{
        const struct sl_tensor *tensor = &graph->values[step->copy_value].tensor;

        *desc = (struct sl_node_desc){.op = SL_OP_IDENTITY, .n_inputs = 1, .n_outputs = 1};
        desc->inputs[0] = *tensor;
        desc->outputs[0] = *tensor;
}

static int walk_copy(struct sl_packing *packing, const struct sl_placement *placement, struct sl_step *step, struct sl_error *error)
{
        describe_copy(placement->graph, step, packing->desc);
        packing->packed[0].data_bytes = 0;
        packing->packed[0].form_bytes = 0;
        packing->constants[0] = NULL;
        return try_step(packing, step, NULL, error);
}

static int walk_step(
        struct sl_packing *packing, const struct sl_program *program, struct sl_step *step, bool *ret_again, struct sl_error *error)
{
        uint32_t origin = number_of(program, step);
        int r = sl_graph_describe(program->placement->graph, step->node, packing->desc);

        if (r < 0)
                return sl_error_set(error, -r, "more than %d inputs", SL_NODE_INPUTS_MAX);
        r = pack_inputs(packing, program, step, ret_again);
        if (r < 0)
                return sl_error_set(error, -r, "backend \"%s\" cannot pack its constants", step->backend->name);
        r = try_step(packing, step, program->part_times ? &program->part_times[step->node] : NULL, error);
        if (r != -ENOTSUP || !give_up_forms(packing, origin))
                return r;
        *ret_again = true;
        return 0;
}

int sl_packing_walk(struct sl_packing *packing, const struct sl_program *program, bool *ret_again, struct sl_error *error)
{
        const struct sl_graph *graph = program->placement->graph;

        for (uint32_t s = 0; s < program->schedule->n_steps; s++) {
                struct sl_step *step = &program->schedule->steps[s];
                bool copies = step->node == SL_VALUE_NONE;

                if (step->dynamic)
                        continue;
                int r = copies ? walk_copy(packing, program->placement, step, error)
                               : walk_step(packing, program, step, ret_again, error);

                if (r < 0)
                        return sl_error_prefix(error, r, "node \"%s\" (%s)", copies ? "" : graph->nodes[step->node].name,
                                sl_op_name(copies ? SL_OP_IDENTITY : graph->nodes[step->node].op));
        }
        return 0;
}
