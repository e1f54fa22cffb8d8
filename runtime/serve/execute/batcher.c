/* SPDX-License-Identifier: Apache-2.0 */
#include "batcher.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/split_mix.h"
#include "draw.h"
#include "port.h"
#include "workspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sl_batcher {
        uint32_t n_inputs, n_outputs;
        struct sl_served_port *inputs, *outputs;
        struct sl_workspace pool;
        unsigned char *home; /* where its pool is: that, or somebody's room */
        unsigned char **pool_inputs, **pool_outputs;
        const void **batch_inputs;
        void **batch_outputs;

        const struct sl_regions *regions;
        struct sl_job *job;
        const uint32_t *pieces; /* of the job */
        uint32_t n_pieces;
        uint32_t samples, done;   /* of all of them */
        uint32_t batch_max;       /* for which the pool has room */
        bool whole;               /* without a batch: one run takes everything */
        struct sl_draw_key *keys; /* of the samples of a batch; NULL: its plan draws nothing */
        bool gathered;
};

static int init_ports(struct sl_batcher *b, const struct sl_plan_info *info)
{
        uint32_t n = info->n_inputs + info->n_outputs;
        int r = 0;

        b->inputs = calloc((size_t)n + 1, sizeof(*b->inputs));
        b->pool_inputs = calloc((size_t)n + 1, sizeof(*b->pool_inputs));
        b->batch_inputs = calloc((size_t)info->n_inputs + 1, sizeof(*b->batch_inputs));
        b->batch_outputs = calloc((size_t)info->n_outputs + 1, sizeof(*b->batch_outputs));
        if (!b->inputs || !b->pool_inputs || !b->batch_inputs || !b->batch_outputs)
                return -ENOMEM;
        b->outputs = b->inputs + info->n_inputs;
        b->pool_outputs = b->pool_inputs + info->n_inputs;
        b->n_inputs = info->n_inputs;
        b->n_outputs = info->n_outputs;
        b->whole = !info->batchable;
        for (uint32_t i = 0; i < b->n_inputs && r == 0; i++)
                r = sl_served_port_init(&b->inputs[i], &info->inputs[i]);
        for (uint32_t i = 0; i < b->n_outputs && r == 0; i++)
                r = sl_served_port_init(&b->outputs[i], &info->outputs[i]);
        return r;
}

static uint64_t place_ports(const struct sl_served_port *ports, uint32_t n, uint32_t batch_max, unsigned char *pool,
        uint64_t offset, unsigned char **places)
{
        for (uint32_t i = 0; i < n; i++) {
                places[i] = pool + offset;
                offset += sl_align_up(sl_served_port_bytes(&ports[i], batch_max), SL_LINE_BYTES);
        }
        return offset;
}

/* UINT64_MAX >> 24 bounds a sample, so that no sum of ports overflows. */
static uint64_t port_bytes(const struct sl_port *described, uint32_t batch_max)
{
        struct sl_served_port port;

        if (sl_served_port_init(&port, described) < 0)
                return UINT64_MAX / (2 * SL_PLAN_PORTS_MAX);
        return sl_align_up(sl_served_port_bytes(&port, batch_max), SL_LINE_BYTES);
}

uint64_t sl_batcher_pool_bytes(const struct sl_plan_info *info, uint32_t batch_max)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                bytes += port_bytes(&info->inputs[i], batch_max);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                bytes += port_bytes(&info->outputs[i], batch_max);
        return bytes;
}

static void place_pool(struct sl_batcher *b, unsigned char *pool, uint32_t samples)
{
        uint64_t outputs = place_ports(b->inputs, b->n_inputs, samples, pool, 0, b->pool_inputs);

        place_ports(b->outputs, b->n_outputs, samples, pool, outputs, b->pool_outputs);
}

uint64_t sl_batcher_bytes(const struct sl_plan_info *info, uint32_t batch_max)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                if (batch_max > 1 || info->inputs[i].indexes)
                        bytes += port_bytes(&info->inputs[i], batch_max);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                bytes += port_bytes(&info->outputs[i], batch_max);
        return bytes;
}

int sl_batcher_new(
        const struct sl_plan_info *info, uint32_t batch_max, const struct sl_regions *regions, struct sl_batcher **ret_batcher)
{
        struct sl_batcher *b = calloc(1, sizeof(*b));

        if (b && info->draws)
                b->keys = calloc(batch_max, sizeof(*b->keys));
        if (!b || init_ports(b, info) < 0 || (info->draws && !b->keys) ||
                sl_workspace_init(&b->pool, sl_batcher_pool_bytes(info, batch_max)) < 0) {
                sl_batcher_free(b);
                return -ENOMEM;
        }
        b->batch_max = batch_max;
        b->home = b->pool.bytes;
        place_pool(b, b->home, batch_max);
        b->regions = regions;
        *ret_batcher = b;
        return 0;
}

void sl_batcher_move(struct sl_batcher *b, void *pool)
{
        b->home = pool;
        place_pool(b, pool, b->batch_max);
        sl_workspace_deinit(&b->pool);
}

void sl_batcher_lend(struct sl_batcher *b, void *pool, uint32_t samples)
{
        place_pool(b, pool, samples);
}

void sl_batcher_return(struct sl_batcher *b)
{
        place_pool(b, b->home, b->batch_max);
}

struct sl_batcher *sl_batcher_free(struct sl_batcher *b)
{
        if (!b)
                return NULL;
        sl_workspace_deinit(&b->pool);
        free(b->keys);
        free(b->inputs);
        free(b->pool_inputs);
        free(b->batch_inputs);
        free(b->batch_outputs);
        free(b);
        return NULL;
}

int sl_batcher_populate(struct sl_batcher *b, uint64_t bytes_max)
{
        return sl_workspace_populate(&b->pool, b->pool.n_bytes, bytes_max);
}

static uint32_t samples_of(const struct sl_batcher *b, uint32_t i)
{
        return b->job->pieces[b->pieces[i]].samples;
}

static const void *input_of(const struct sl_batcher *b, uint32_t i, uint32_t input)
{
        const struct sl_place *place = &sl_job_inputs(b->job, b->pieces[i])[input];

        return place->region == SL_NO_REGION ? NULL : sl_regions_at(b->regions, place);
}

/* NULL: nobody wants it. */
static void *output_of(const struct sl_batcher *b, uint32_t i, uint32_t output)
{
        const struct sl_place *place = &sl_job_outputs(b->job, b->pieces[i])[output];

        return place->region == SL_NO_REGION ? NULL : sl_regions_at(b->regions, place);
}

static void gather(struct sl_batcher *b)
{
        for (uint32_t k = 0; k < b->n_inputs; k++) {
                unsigned char *to = b->pool_inputs[k];

                for (uint32_t i = 0; i < b->n_pieces; i++) {
                        size_t bytes = sl_served_port_bytes(&b->inputs[k], samples_of(b, i));

                        memcpy(to, input_of(b, i, k), bytes);
                        to += bytes;
                }
        }
}

void sl_batcher_begin(struct sl_batcher *b, struct sl_job *job, const uint32_t *pieces, uint32_t n)
{
        b->job = job;
        b->pieces = pieces;
        b->n_pieces = n;
        b->samples = b->done = 0;
        b->gathered = n > 1;
        for (uint32_t i = 0; i < n; i++)
                b->samples += samples_of(b, i);
        SL_ASSERT(!b->gathered || b->samples <= b->batch_max);
        if (b->gathered)
                gather(b);
}

/* One piece: client memory in place, or through the pool for inputs that index. */
static const void *split_input(struct sl_batcher *b, uint32_t input, uint32_t samples)
{
        const struct sl_served_port *port = &b->inputs[input];
        const unsigned char *from = input_of(b, 0, input);

        if (!from)
                return NULL;
        from += b->done * sl_job_inputs(b->job, b->pieces[0])[input].stride;
        if (!port->port.indexes || sl_port_is_open(&port->port)) /* of any size: the instance copies it */
                return from;
        memcpy(b->pool_inputs[input], from, sl_served_port_bytes(port, samples));
        return b->pool_inputs[input];
}

static void *split_output(struct sl_batcher *b, uint32_t output)
{
        unsigned char *to = output_of(b, 0, output);

        if (!to && sl_port_is_open(&b->outputs[output].port))
                return NULL;
        if (!to)
                return b->pool_outputs[output];
        return to + b->done * sl_job_outputs(b->job, b->pieces[0])[output].stride;
}

/* Samples [first, first + n) of all pieces. Members of an ensemble draw apart from each other, though they may be one model. */
static void note_keys(struct sl_batcher *b, uint32_t first, uint32_t n)
{
        uint32_t before = 0, noted = 0;

        for (uint32_t i = 0; i < b->n_pieces && noted < n; before += samples_of(b, i++)) {
                const struct sl_piece *piece = &b->job->pieces[b->pieces[i]];

                for (uint32_t k = first + noted - before; k < piece->samples && noted < n; k++)
                        b->keys[noted++] = (struct sl_draw_key){
                                .origin = piece->origin + piece->member * SL_SPLIT_MIX_STEP, .index = piece->start + k};
        }
}

static void take_batch(struct sl_batcher *b, uint32_t step, struct sl_batch *ret_batch)
{
        *ret_batch = (struct sl_batch){.samples = step, .inputs = b->batch_inputs, .outputs = b->batch_outputs};
        ret_batch->keys = b->keys;
        if (b->keys)
                note_keys(b, b->done, step);
        for (uint32_t i = 0; i < b->n_inputs; i++)
                ret_batch->inputs[i] =
                        b->gathered ? b->pool_inputs[i] + (size_t)b->done * b->inputs[i].sample_bytes : split_input(b, i, step);
        for (uint32_t i = 0; i < b->n_outputs; i++)
                ret_batch->outputs[i] =
                        b->gathered ? b->pool_outputs[i] + (size_t)b->done * b->outputs[i].sample_bytes : split_output(b, i);
        b->done = b->whole ? b->samples : b->done + step;
}

bool sl_batcher_next(struct sl_batcher *b, const struct sl_instance *instance, struct sl_batch *ret_batch)
{
        if (b->done == b->samples)
                return false;
        take_batch(b, b->whole ? 1 : sl_instance_step(instance, b->samples - b->done), ret_batch);
        return true;
}

void sl_batcher_whole(struct sl_batcher *b, struct sl_batch *ret_batch)
{
        take_batch(b, b->whole ? 1 : b->samples, ret_batch);
}

void sl_batcher_scatter(struct sl_batcher *b)
{
        if (!b->gathered)
                return;
        for (uint32_t i = 0; i < b->n_outputs; i++) {
                const unsigned char *from = b->pool_outputs[i];

                for (uint32_t p = 0; p < b->n_pieces; p++) {
                        size_t bytes = sl_served_port_bytes(&b->outputs[i], samples_of(b, p));
                        void *to = output_of(b, p, i);

                        if (to)
                                memcpy(to, from, bytes);
                        from += bytes;
                }
        }
}

void sl_batcher_pool(struct sl_batcher *b, uint32_t samples, struct sl_batch *ret_batch)
{
        *ret_batch = (struct sl_batch){.samples = samples, .inputs = b->batch_inputs, .outputs = b->batch_outputs};
        for (uint32_t i = 0; i < b->n_inputs; i++)
                ret_batch->inputs[i] = b->pool_inputs[i];
        for (uint32_t i = 0; i < b->n_outputs; i++)
                ret_batch->outputs[i] = b->pool_outputs[i];
}
