/* SPDX-License-Identifier: Apache-2.0 */
/*
 *      scores [batch, heads, rows, keys] = scale * queries * transposed(keys)     float32, in scratch
 *      + mask, Softmax                                                            own kernels
 *      weights = scores, in the type of the rows                                  own kernels, where that is another one
 *      output = weights * values
 *
 * Heads lie side by side in a row, so that a product takes all heads of one sample or one head of all samples as a stack: whichever
 * makes fewer products.
 */
#include "cuda/attention.h"

#include "op.h"
#include "shape/attention.h"

#include <errno.h>
#include <stdlib.h>

struct attention {
        struct sl_attention shape;
        uint32_t type;
        int64_t row[3]; /* elements of a row of queries, keys and values */
        uint64_t scores, weights;
        bool tf32;
};

/* One product for each of @loops, over a stack of @batch. */
struct stacks {
        int64_t loops, batch;
        bool by_sample; /* a loop is a sample, a matrix of the stack a head */
};

static struct stacks stacks_of(const struct sl_attention *a)
{
        bool by_sample = a->batch <= a->heads;

        return (struct stacks){
                .loops = by_sample ? a->batch : a->heads, .batch = by_sample ? a->heads : a->batch, .by_sample = by_sample};
}

static bool read(const struct sl_node_desc *node, struct attention *a)
{
        uint32_t type = node->inputs[0].dtype;

        if (sl_attention_read(node, &a->shape, NULL) < 0 || (type != SL_DTYPE_F32 && type != SL_DTYPE_F16 && type != SL_DTYPE_BF16))
                return false;
        a->type = type;
        for (uint32_t i = 0; i < 3; i++)
                a->row[i] = node->inputs[i].shape.dims[2];
        /* Weights of rows that are masked whole would have to be mended. */
        return !a->shape.guard && a->shape.batch > 0 && a->shape.rows > 0 && a->shape.keys > 0;
}

/* Element of a tensor of rows where the matrix of loop @i begins. */
static int64_t rows_at(const struct stacks *s, int64_t rows, int64_t row, int64_t head, int64_t i)
{
        return s->by_sample ? i * rows * row : i * head;
}

static int64_t rows_step(const struct stacks *s, int64_t rows, int64_t row, int64_t head)
{
        return s->by_sample ? head : rows * row;
}

static struct sl_cuda_place place(uint32_t kind, uint32_t index, int64_t elements, uint32_t dtype)
{
        return (struct sl_cuda_place){.kind = kind, .index = index, .bytes = (uint64_t)elements * sl_dtype_bytes(dtype)};
}

static int64_t scores_at(const struct attention *a, const struct stacks *s, int64_t i)
{
        int64_t one = a->shape.rows * a->shape.keys;

        return s->by_sample ? i * a->shape.heads * one : i * one;
}

static int64_t scores_step(const struct attention *a, const struct stacks *s)
{
        int64_t one = a->shape.rows * a->shape.keys;

        return s->by_sample ? one : a->shape.heads * one;
}

static int add_scores(struct sl_cuda_recipe *recipe, const struct attention *a, int64_t i)
{
        const struct sl_attention *h = &a->shape;
        const struct stacks s = stacks_of(h);
        const struct sl_cuda_product product = {.type = a->type,
                .out_type = SL_DTYPE_F32,
                .rows = h->rows,
                .depth = h->depth,
                .columns = h->keys,
                .batch = s.batch,
                .right_turned = true,
                .left_row = a->row[0],
                .right_row = a->row[1],
                .out_row = h->keys,
                .left_step = rows_step(&s, h->rows, a->row[0], h->depth),
                .right_step = rows_step(&s, h->keys, a->row[1], h->depth),
                .out_step = scores_step(a, &s),
                .alpha = (float)h->scale,
                .tf32 = a->tf32};
        struct sl_cuda_step *step = sl_cuda_recipe_multiply(recipe, &product);

        if (!step)
                return -ENOMEM;
        step->places[SL_CUDA_LEFT] = place(SL_CUDA_INPUT, 0, h->first[0] + rows_at(&s, h->rows, a->row[0], h->depth, i), a->type);
        step->places[SL_CUDA_RIGHT] = place(SL_CUDA_INPUT, 1, h->first[1] + rows_at(&s, h->keys, a->row[1], h->depth, i), a->type);
        step->places[SL_CUDA_OUT] = place(SL_CUDA_SCRATCH, 0, scores_at(a, &s, i), SL_DTYPE_F32);
        step->places[SL_CUDA_OUT].bytes += a->scores;
        return 0;
}

static int add_sums(struct sl_cuda_recipe *recipe, const struct attention *a, int64_t i)
{
        const struct sl_attention *h = &a->shape;
        const struct stacks s = stacks_of(h);
        int64_t row = h->heads * h->width;
        const struct sl_cuda_product product = {.type = a->type,
                .out_type = a->type,
                .rows = h->rows,
                .depth = h->keys,
                .columns = h->width,
                .batch = s.batch,
                .left_row = h->keys,
                .right_row = a->row[2],
                .out_row = row,
                .left_step = scores_step(a, &s),
                .right_step = rows_step(&s, h->keys, a->row[2], h->width),
                .out_step = rows_step(&s, h->rows, row, h->width),
                .alpha = 1,
                .tf32 = a->tf32};
        struct sl_cuda_step *step = sl_cuda_recipe_multiply(recipe, &product);

        if (!step)
                return -ENOMEM;
        step->places[SL_CUDA_LEFT] = place(SL_CUDA_SCRATCH, 0, scores_at(a, &s, i), a->type);
        step->places[SL_CUDA_LEFT].bytes += a->weights;
        step->places[SL_CUDA_RIGHT] = place(SL_CUDA_INPUT, 2, h->first[2] + rows_at(&s, h->keys, a->row[2], h->width, i), a->type);
        step->places[SL_CUDA_OUT] = place(SL_CUDA_OUTPUT, 0, rows_at(&s, h->rows, row, h->width, i), a->type);
        return 0;
}

/* ---- own steps over the scores ---- */

static struct sl_tensor scores_tensor(const struct attention *a, uint32_t dtype)
{
        return (struct sl_tensor){.dtype = dtype,
                .layout = SL_LAYOUT_PLAIN,
                .shape = {4, {a->shape.batch, a->shape.heads, a->shape.rows, a->shape.keys}}};
}

static struct sl_cuda_place scratch(uint64_t at)
{
        return (struct sl_cuda_place){.kind = SL_CUDA_SCRATCH, .bytes = at};
}

static int add_mask(
        struct sl_cuda_recipe *recipe, const struct attention *a, const struct sl_node_desc *node, struct sl_node_desc *step)
{
        const struct sl_tensor *mask = &node->inputs[SL_ATTENTION_MASK];
        struct sl_cuda_place places[] = {
                scratch(a->scores), {.kind = SL_CUDA_INPUT, .index = SL_ATTENTION_MASK}, scratch(a->scores)};
        struct sl_cuda_place wide[] = {{.kind = SL_CUDA_INPUT, .index = SL_ATTENTION_MASK}, {.kind = SL_CUDA_NOWHERE}};
        int r = 0;

        if (node->n_inputs <= SL_ATTENTION_MASK || mask->dtype == SL_DTYPE_NONE)
                return 0;
        *step = (struct sl_node_desc){.n_inputs = 1, .n_outputs = 1, .inputs = {*mask}, .outputs = {*mask}};
        if (mask->dtype != SL_DTYPE_F32) {
                step->op = SL_OP_CAST;
                step->outputs[0].dtype = SL_DTYPE_F32;
                (void)sl_attrs_set_int(&step->attrs, SL_ATTR_TO, SL_DTYPE_F32);
                wide[1] = scratch(sl_cuda_recipe_keep(recipe, sl_tensor_bytes(&step->outputs[0])));
                places[1] = wide[1];
                r = sl_cuda_recipe_own(recipe, step, wide);
        }
        *step = (struct sl_node_desc){.op = SL_OP_ADD, .n_inputs = 2, .n_outputs = 1};
        step->inputs[0] = step->outputs[0] = scores_tensor(a, SL_DTYPE_F32);
        step->inputs[1] = *mask;
        step->inputs[1].dtype = SL_DTYPE_F32;
        return r < 0 ? r : sl_cuda_recipe_own(recipe, step, places);
}

static int add_softmax(struct sl_cuda_recipe *recipe, const struct attention *a, struct sl_node_desc *step)
{
        const struct sl_cuda_place places[] = {scratch(a->scores), scratch(a->scores)};
        const struct sl_cuda_place narrowed[] = {scratch(a->scores), scratch(a->weights)};
        int r;

        *step = (struct sl_node_desc){.op = SL_OP_SOFTMAX, .n_inputs = 1, .n_outputs = 1};
        step->inputs[0] = step->outputs[0] = scores_tensor(a, SL_DTYPE_F32);
        (void)sl_attrs_set_int(&step->attrs, SL_ATTR_AXIS, 3);
        r = sl_cuda_recipe_own(recipe, step, places);
        if (r < 0 || a->type == SL_DTYPE_F32)
                return r;
        *step = (struct sl_node_desc){.op = SL_OP_CAST, .n_inputs = 1, .n_outputs = 1};
        step->inputs[0] = scores_tensor(a, SL_DTYPE_F32);
        step->outputs[0] = scores_tensor(a, a->type);
        (void)sl_attrs_set_int(&step->attrs, SL_ATTR_TO, a->type);
        return sl_cuda_recipe_own(recipe, step, narrowed);
}

int sl_cuda_attention_make(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, bool tf32)
{
        struct sl_node_desc *step;
        struct attention a = {.tf32 = tf32};
        int64_t loops;
        int r = 0;

        if (!read(node, &a))
                return -ENOTSUP;
        step = malloc(sizeof(*step));
        if (!step)
                return -ENOMEM;
        const struct sl_tensor scores = scores_tensor(&a, SL_DTYPE_F32), weights = scores_tensor(&a, a.type);

        loops = stacks_of(&a.shape).loops;
        a.scores = sl_cuda_recipe_keep(recipe, sl_tensor_bytes(&scores));
        a.weights = a.type == SL_DTYPE_F32 ? a.scores : sl_cuda_recipe_keep(recipe, sl_tensor_bytes(&weights));
        for (int64_t i = 0; i < loops && r == 0; i++)
                r = add_scores(recipe, &a, i);
        if (r == 0)
                r = add_mask(recipe, &a, node, step);
        if (r == 0)
                r = add_softmax(recipe, &a, step);
        for (int64_t i = 0; i < loops && r == 0; i++)
                r = add_sums(recipe, &a, i);
        free(step);
        return r;
}

bool sl_cuda_attention_fits(const struct sl_node_desc *node)
{
        struct attention a = {.tf32 = false};

        return read(node, &a);
}
