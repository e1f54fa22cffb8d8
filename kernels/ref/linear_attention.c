/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LinearAttention, one head of keys after the other, one step of the sequence after the other. The head's state lies in scratch,
 * as doubles, and behind it what the state says of one key.
 */
#include "shape/linear_attention.h"

#include "element.h"
#include "kernels.h"

struct linear {
        const struct sl_node_desc *node;
        const struct sl_binding *binding;
        struct sl_linear form;
        double *state, *said;
};

static bool present(const struct sl_node_desc *node, uint32_t input)
{
        return input < node->n_inputs && node->inputs[input].dtype != SL_DTYPE_NONE;
}

size_t sl_ref_scratch_linear_attention(const struct sl_node_desc *node)
{
        struct sl_linear form = {.size = 0};

        sl_linear_read(node, &form, NULL);
        return ((size_t)form.size + 1) * (size_t)form.v_size * sizeof(double);
}

static double load(const struct linear *a, uint32_t input, int64_t at)
{
        return sl_ref_load(a->binding->inputs[input], at, a->node->inputs[input].dtype);
}

static void start(const struct linear *a, int64_t head_of_batch)
{
        int64_t n = a->form.size * a->form.v_size;

        for (int64_t i = 0; i < n && sl_pace_on(a->binding->pace, 1); i++)
                a->state[i] = present(a->node, SL_LINEAR_PAST) ? load(a, SL_LINEAR_PAST, head_of_batch * n + i) : 0;
}

/* The state fades, @step being that of the head of keys. */
static void decay(const struct linear *a, int64_t step)
{
        const struct sl_linear *f = &a->form;

        for (int64_t i = 0; i < f->size && sl_pace_on(a->binding->pace, (uint64_t)f->v_size); i++) {
                double factor = exp(load(a, SL_LINEAR_DECAY, f->one_decay ? step : step * f->size + i));

                for (int64_t k = 0; k < f->v_size; k++)
                        a->state[i * f->v_size + k] *= factor;
        }
}

/* What the state says of the key already. */
static void recall(const struct linear *a, int64_t step)
{
        const struct sl_linear *f = &a->form;

        for (int64_t k = 0; k < f->v_size; k++)
                a->said[k] = 0;
        for (int64_t i = 0; i < f->size && f->delta && sl_pace_on(a->binding->pace, (uint64_t)f->v_size); i++)
                for (int64_t k = 0; k < f->v_size; k++)
                        a->said[k] += a->state[i * f->v_size + k] * load(a, SL_LINEAR_K, step * f->size + i);
}

static void learn(const struct linear *a, int64_t step)
{
        const struct sl_linear *f = &a->form;
        double rate = f->delta ? load(a, SL_LINEAR_BETA, f->one_beta ? step / f->kv_heads : step) : 1;

        for (int64_t i = 0; i < f->size && sl_pace_on(a->binding->pace, (uint64_t)f->v_size); i++) {
                double key = load(a, SL_LINEAR_K, step * f->size + i);

                for (int64_t k = 0; k < f->v_size; k++)
                        a->state[i * f->v_size + k] += rate * key * (load(a, SL_LINEAR_V, step * f->v_size + k) - a->said[k]);
        }
}

/* The answer to one head of queries, @step being that of it. */
static void answer(const struct linear *a, int64_t step)
{
        const struct sl_linear *f = &a->form;

        for (int64_t k = 0; k < f->v_size && sl_pace_on(a->binding->pace, (uint64_t)f->size); k++) {
                double sum = 0;

                for (int64_t i = 0; i < f->size; i++)
                        sum += load(a, SL_LINEAR_Q, step * f->size + i) * a->state[i * f->v_size + k];
                sl_ref_store(a->binding->outputs[0], step * f->v_size + k, a->node->outputs[0].dtype, sum * f->scale);
        }
}

static void store_state(const struct linear *a, int64_t head_of_batch)
{
        int64_t n = a->form.size * a->form.v_size;

        for (int64_t i = 0; i < n && a->node->n_outputs > 1 && sl_pace_on(a->binding->pace, 1); i++)
                sl_ref_store(a->binding->outputs[1], head_of_batch * n + i, a->node->outputs[1].dtype, a->state[i]);
}

int sl_ref_linear_attention(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct linear a = {.node = node, .binding = binding, .state = binding->scratch};
        const struct sl_linear *f = &a.form;
        int64_t shared;

        sl_linear_read(node, &a.form, NULL);
        a.said = a.state + f->size * f->v_size;
        shared = f->q_heads / f->kv_heads;
        for (int64_t i = 0; i < f->batch * f->kv_heads && sl_pace_on(binding->pace, 1); i++) {
                int64_t batch = i / f->kv_heads, head = i % f->kv_heads;

                start(&a, i);
                for (int64_t t = batch * f->length; t < (batch + 1) * f->length && sl_pace_on(binding->pace, 1); t++) {
                        if (f->gated)
                                decay(&a, t * f->kv_heads + head);
                        recall(&a, t * f->kv_heads + head);
                        learn(&a, t * f->kv_heads + head);
                        for (int64_t q = 0; q < shared; q++)
                                answer(&a, t * f->q_heads + head * shared + q);
                }
                store_state(&a, i);
        }
        return 0;
}
