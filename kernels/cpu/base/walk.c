/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/base/walk.h"

static void move_dimension(struct sl_walk *walk, uint32_t to, uint32_t from)
{
        walk->sizes[to] = walk->sizes[from];
        for (uint32_t t = 0; t < walk->n_tensors; t++)
                walk->strides[t][to] = walk->strides[t][from];
}

static void swap_dimensions(struct sl_walk *walk, uint32_t a, uint32_t b)
{
        int64_t size = walk->sizes[a];

        walk->sizes[a] = walk->sizes[b];
        walk->sizes[b] = size;
        for (uint32_t t = 0; t < walk->n_tensors; t++) {
                int64_t stride = walk->strides[t][a];

                walk->strides[t][a] = walk->strides[t][b];
                walk->strides[t][b] = stride;
        }
}

static void drop_single(struct sl_walk *walk)
{
        uint32_t kept = 0;

        for (uint32_t d = 0; d < walk->rank; d++)
                if (walk->sizes[d] != 1)
                        move_dimension(walk, kept++, d);
        walk->rank = kept;
}

/* Few dimensions and nearly in order: insertion sort. */
static void sort_by_first(struct sl_walk *walk)
{
        for (uint32_t i = 1; i < walk->rank; i++)
                for (uint32_t j = i; j > 0 && walk->strides[0][j - 1] < walk->strides[0][j]; j--)
                        swap_dimensions(walk, j - 1, j);
}

static bool continues(const struct sl_walk *walk, uint32_t outer, uint32_t inner)
{
        for (uint32_t t = 0; t < walk->n_tensors; t++)
                if (walk->strides[t][outer] != walk->strides[t][inner] * walk->sizes[inner])
                        return false;
        return true;
}

static void merge(struct sl_walk *walk)
{
        uint32_t last = 0;

        for (uint32_t d = 1; d < walk->rank; d++) {
                if (continues(walk, last, d)) {
                        int64_t outer = walk->sizes[last];

                        move_dimension(walk, last, d);
                        walk->sizes[last] *= outer;
                } else {
                        move_dimension(walk, ++last, d);
                }
        }
        walk->rank = last + 1;
}

static void become_single(struct sl_walk *walk, int64_t size)
{
        walk->rank = 1;
        walk->sizes[0] = size;
        for (uint32_t t = 0; t < walk->n_tensors; t++)
                walk->strides[t][0] = 1;
}

void sl_walk_order(struct sl_walk *walk)
{
        for (uint32_t d = 0; d < walk->rank; d++)
                if (!walk->sizes[d]) {
                        become_single(walk, 0);
                        return;
                }
        drop_single(walk);
        if (!walk->rank) {
                become_single(walk, 1);
                return;
        }
        sort_by_first(walk);
        merge(walk);
}

bool sl_walk_broadcast(const struct sl_tensor *operand, const struct sl_shape *shape, int64_t ret_strides[SL_WALK_RANK_MAX])
{
        uint32_t missing = shape->rank - operand->shape.rank;
        int64_t own[SL_RANK_MAX];

        if (operand->shape.rank > shape->rank)
                return false;
        sl_tensor_strides(operand, own);
        for (uint32_t d = 0; d < shape->rank; d++) {
                if (d < missing || operand->shape.dims[d - missing] == 1)
                        ret_strides[d] = 0;
                else if (operand->shape.dims[d - missing] == shape->dims[d])
                        ret_strides[d] = own[d - missing];
                else
                        return false;
        }
        return true;
}

bool sl_walk_elements(struct sl_walk *walk, const struct sl_tensor *output, const struct sl_tensor *inputs, uint32_t n_inputs)
{
        walk->rank = output->shape.rank;
        walk->n_tensors = n_inputs + 1;
        for (uint32_t d = 0; d < walk->rank; d++)
                walk->sizes[d] = output->shape.dims[d];
        sl_tensor_strides(output, walk->strides[0]);
        for (uint32_t i = 0; i < n_inputs; i++)
                if (!sl_walk_broadcast(&inputs[i], &output->shape, walk->strides[i + 1]))
                        return false;
        sl_walk_order(walk);
        return true;
}

const struct sl_walk *sl_walk_take(
        const struct sl_walk *walk, const struct sl_part *part, struct sl_walk *room, struct sl_walk_row *ret_row)
{
        int64_t unit = walk->rank > 1 ? 1 : SL_WALK_FLAT, first, end;

        *ret_row = (struct sl_walk_row){0};
        if (!part || part->axis != SL_AXIS_ROWS)
                return walk;
        first = part->first * unit;
        end = part->end * unit < walk->sizes[0] ? part->end * unit : walk->sizes[0];
        *room = *walk;
        room->sizes[0] = end > first ? end - first : 0;
        for (uint32_t t = 0; t < walk->n_tensors; t++)
                ret_row->offset[t] = first * walk->strides[t][0];
        return room;
}

/* The dimensions that the tensor steps along, by how far, the nearest first. False: some step goes back. */
static bool list_steps(const struct sl_walk *walk, uint32_t tensor, uint32_t *ret_n, uint32_t ret_dims[SL_WALK_RANK_MAX])
{
        const int64_t *strides = walk->strides[tensor];
        uint32_t n = 0;

        for (uint32_t d = 0; d < walk->rank; d++) {
                uint32_t at = n;

                if (strides[d] < 0)
                        return false;
                if (!strides[d] || walk->sizes[d] < 2)
                        continue;
                for (; at && strides[ret_dims[at - 1]] > strides[d]; at--)
                        ret_dims[at] = ret_dims[at - 1];
                ret_dims[at] = d;
                n++;
        }
        *ret_n = n;
        return true;
}

/* In elements: one run grows while its steps lie in it, then runs that are as far apart. False: they do not lie so. */
static bool add_step(int64_t size, int64_t stride, struct sl_reach *reach)
{
        if (reach->runs == 1 && stride <= reach->bytes)
                reach->bytes += (size - 1) * stride;
        else if (reach->runs == 1)
                *reach = (struct sl_reach){.bytes = reach->bytes, .pitch = stride, .runs = size};
        else if (stride == reach->pitch * reach->runs)
                reach->runs *= size;
        else
                return false;
        return true;
}

bool sl_walk_reach(
        const struct sl_walk *walk, const struct sl_part *part, uint32_t tensor, int64_t bytes, struct sl_reach *ret_reach)
{
        struct sl_walk room;
        struct sl_walk_row row;
        const struct sl_walk *own = sl_walk_take(walk, part, &room, &row);
        struct sl_reach reach = {.bytes = 1, .runs = 1};
        uint32_t n, dims[SL_WALK_RANK_MAX];
        bool even = true;
        int64_t last = 1;

        if (!list_steps(own, tensor, &n, dims))
                return false;
        for (uint32_t i = 0; i < n; i++) {
                last += (own->sizes[dims[i]] - 1) * own->strides[tensor][dims[i]];
                even = even && add_step(own->sizes[dims[i]], own->strides[tensor][dims[i]], &reach);
        }
        if (!even)
                reach = (struct sl_reach){.bytes = last, .runs = 1};
        *ret_reach = (struct sl_reach){.first = row.offset[tensor] * bytes,
                .bytes = reach.bytes * bytes,
                .pitch = reach.pitch * bytes,
                .runs = own->sizes[0] > 0 ? reach.runs : 0};
        return true;
}
