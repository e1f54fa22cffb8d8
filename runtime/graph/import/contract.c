/* SPDX-License-Identifier: Apache-2.0 */
#include "import/contract.h"

#include "import/product.h"

#include <math.h>

struct sl_contracted sl_contracted_of(const struct sl_importer *im, const struct sl_term *term, uint32_t value)
{
        struct sl_contracted operand = {.term = *term, .value = value};

        for (uint32_t i = 0; i < term->count; i++)
                operand.sizes[term->labels[i]] = im->graph->values[value].tensor.shape.dims[i];
        return operand;
}

static bool has_zero(const struct sl_contracted *operand)
{
        for (uint32_t i = 0; i < operand->term.count; i++)
                if (operand->sizes[operand->term.labels[i]] == 0)
                        return true;
        return false;
}

static int emit(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, uint32_t attr,
        const int64_t *numbers, uint32_t count, uint32_t *value)
{
        int result = sl_attrs_set_ints(&draft->attrs, attr, numbers, count);

        draft->n_inputs = draft->n_outputs = 1;
        draft->inputs[0] = *value;
        return result < 0 ? result : sl_import_emit_step(im, node, draft, value);
}

static int turn(struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_term *to, struct sl_contracted *operand)
{
        struct sl_draft transpose = {.op = SL_OP_TRANSPOSE};
        int64_t perm[SL_TERM_LABELS_MAX];
        bool turned = false;
        int result;

        for (uint32_t i = 0; i < to->count; i++) {
                perm[i] = sl_term_at(&operand->term, to->labels[i]);
                turned |= perm[i] != i;
        }
        if (!turned)
                return 0;
        result = emit(im, node, &transpose, SL_ATTR_PERM, perm, to->count, &operand->value);
        operand->term = *to;
        return result;
}

/* Takes the dimensions of @labels out of the operand, by Squeeze or by ReduceSum. */
static int take_out(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t op, const struct sl_term *labels,
        struct sl_contracted *operand)
{
        struct sl_draft draft = {.op = op};
        struct sl_term left = {.count = 0};
        int64_t axes[SL_TERM_LABELS_MAX];
        int result = op == SL_OP_REDUCE_SUM ? sl_attrs_set_int(&draft.attrs, SL_ATTR_KEEPDIMS, 0) : 0;

        if (!labels->count || result < 0)
                return result;
        for (uint32_t i = 0; i < labels->count; i++)
                axes[i] = sl_term_at(&operand->term, labels->labels[i]);
        for (uint32_t i = 0; i < operand->term.count; i++)
                if (!sl_term_has(labels, operand->term.labels[i]))
                        sl_term_append(&left, operand->term.labels[i]);
        operand->term = left;
        return emit(im, node, &draft, SL_ATTR_AXES, axes, labels->count, &operand->value);
}

/* A dimension of 1 that the other operand has too is repeated along it: it can as well be left out. */
static int drop_ones(
        struct sl_importer *im, const struct sl_onnx_node *node, struct sl_contracted *operand, const struct sl_contracted *other)
{
        struct sl_term ones = {.count = 0};

        for (uint32_t i = 0; i < operand->term.count; i++) {
                uint8_t label = operand->term.labels[i];

                if (sl_term_has(&other->term, label) && operand->sizes[label] == 1 && other->sizes[label] != 1)
                        sl_term_append(&ones, label);
        }
        return take_out(im, node, SL_OP_SQUEEZE, &ones, operand);
}

/* What nobody else has and nobody wants. */
static int sum_alone(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_contracted *operand,
        const struct sl_term *other, const struct sl_term *keep)
{
        struct sl_term alone = {.count = 0};

        for (uint32_t i = 0; i < operand->term.count; i++) {
                uint8_t label = operand->term.labels[i];

                if (!sl_term_has(keep, label) && (!other || !sl_term_has(other, label)))
                        sl_term_append(&alone, label);
        }
        return take_out(im, node, SL_OP_REDUCE_SUM, &alone, operand);
}

/* Both operands must have the same size, whatever the request: a 1 that turns up later would be repeated. */
static bool sizes_agree(const struct sl_contracted *pair)
{
        for (uint32_t i = 0; i < pair[0].term.count; i++) {
                uint8_t label = pair[0].term.labels[i];
                int64_t size = pair[0].sizes[label];

                if (sl_term_has(&pair[1].term, label) && (size != pair[1].sizes[label] || size == SL_DIM_UNKNOWN))
                        return false;
        }
        return true;
}

static int merge(struct sl_importer *im, const struct sl_onnx_node *node, const int64_t *dims, uint32_t count, uint32_t *value)
{
        struct sl_draft draft = {.op = SL_OP_RESHAPE};

        return emit(im, node, &draft, SL_ATTR_SHAPE, dims, count, value);
}

static int multiply(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_contracted *pair, const struct sl_product *p,
        struct sl_contracted *ret_made)
{
        struct sl_product_shape shapes[2] = {sl_product_shape_left(pair, p), sl_product_shape_right(pair, p)},
                                made = sl_product_shape_made(pair, p);
        struct sl_term sides[2] = {sl_product_left(p), sl_product_right(p)};
        struct sl_draft product = {.op = SL_OP_MATMUL, .n_inputs = 2, .n_outputs = 1};
        int result = 0;

        if (!sl_product_fits(&shapes[0]) || !sl_product_fits(&shapes[1]) || !sl_product_fits(&made))
                return 0;
        for (uint32_t k = 0; k < 2 && result == 0; k++) {
                result = turn(im, node, &sides[k], &pair[k]);
                product.inputs[k] = pair[k].value;
                if (result == 0 && shapes[k].changes)
                        result = merge(im, node, shapes[k].dims, shapes[k].count, &product.inputs[k]);
        }
        if (result == 0)
                result = sl_import_emit_step(im, node, &product, &ret_made->value);
        if (result == 0 && made.changes)
                result = merge(im, node, made.dims, made.count, &ret_made->value);
        ret_made->term = sl_product_made(p);
        return result < 0 ? result : 1;
}

/* The operand in an order of all labels, with a dimension of 1 for what it lacks. */
static int spread(struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_term *all, struct sl_contracted *operand)
{
        struct sl_draft unsqueeze = {.op = SL_OP_UNSQUEEZE};
        struct sl_term own = {.count = 0};
        int64_t axes[SL_TERM_LABELS_MAX];
        uint32_t n_axes = 0;
        int result;

        for (uint32_t i = 0; i < all->count; i++)
                if (sl_term_has(&operand->term, all->labels[i]))
                        sl_term_append(&own, all->labels[i]);
                else
                        axes[n_axes++] = i;
        result = turn(im, node, &own, operand);
        if (result < 0 || !n_axes)
                return result;
        operand->term = *all;
        return emit(im, node, &unsqueeze, SL_ATTR_AXES, axes, n_axes, &operand->value);
}

/* Element by element, then the sum over what both had and nobody wants. */
static int scale(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_contracted *pair, const struct sl_term *all,
        const struct sl_term *keep, struct sl_contracted *ret_made)
{
        struct sl_draft mul = {.op = SL_OP_MUL, .n_inputs = 2, .n_outputs = 1};
        int result = 0;

        for (uint32_t k = 0; k < 2 && result == 0; k++) {
                result = spread(im, node, all, &pair[k]);
                mul.inputs[k] = pair[k].value;
        }
        if (result == 0)
                result = sl_import_emit_step(im, node, &mul, &ret_made->value);
        ret_made->term = *all;
        if (result == 0)
                result = sum_alone(im, node, ret_made, NULL, keep);
        return result < 0 ? result : 1;
}

/* All labels of two operands, those that are kept first in their order; false: too many for one tensor. */
static bool unite(const struct sl_contracted *pair, const struct sl_term *keep, struct sl_term *ret_all)
{
        const struct sl_term *const parts[] = {keep, &pair[0].term, &pair[1].term};
        struct sl_term all = {.count = 0};

        for (uint32_t p = 0; p < 3; p++)
                for (uint32_t i = 0; i < parts[p]->count; i++) {
                        uint8_t label = parts[p]->labels[i];

                        if (sl_term_has(&all, label) || (!sl_term_has(&pair[0].term, label) && !sl_term_has(&pair[1].term, label)))
                                continue;
                        if (all.count == SL_TERM_LABELS_MAX)
                                return false;
                        sl_term_append(&all, label);
                }
        *ret_all = all;
        return true;
}

/* What each has or sums alone is gone afterwards. */
static int simplify(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_contracted *pair, const struct sl_term *keep)
{
        int result = drop_ones(im, node, &pair[0], &pair[1]);

        if (result == 0)
                result = drop_ones(im, node, &pair[1], &pair[0]);
        if (result == 0)
                result = sum_alone(im, node, &pair[0], &pair[1].term, keep);
        return result < 0 ? result : sum_alone(im, node, &pair[1], &pair[0].term, keep);
}

/* By MatMul, whichever operand is better left. */
static int multiply_either(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_contracted *pair,
        const struct sl_term *keep, const struct sl_term *out, struct sl_contracted *ret_made)
{
        struct sl_contracted swapped[2] = {pair[1], pair[0]};
        double cost, swapped_cost;
        struct sl_product straight = sl_product_choose(im, pair, keep, out, &cost);
        struct sl_product crossed = sl_product_choose(im, swapped, keep, out, &swapped_cost);
        int result = swapped_cost < cost ? 0 : multiply(im, node, pair, &straight, ret_made);

        if (result == 0)
                result = multiply(im, node, swapped, &crossed, ret_made);
        return result ? result : multiply(im, node, pair, &straight, ret_made);
}

/* The product of two. @keep: the labels that others want; @out: their order in the end, or NULL. */
static int contract_pair(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_contracted *pair,
        const struct sl_term *keep, const struct sl_term *out, struct sl_contracted *ret_made)
{
        struct sl_term all, order;
        bool inner, alone;
        int result = simplify(im, node, pair, keep);

        if (result < 0)
                return result;
        if (!sizes_agree(pair) || !unite(pair, keep, &all))
                return 0;
        for (uint32_t i = 0; i < all.count; i++)
                ret_made->sizes[all.labels[i]] = sl_product_size(pair, all.labels[i]);
        order = sl_product_labels(pair, keep, SL_PRODUCT_INNER, &all);
        inner = order.count;
        order = sl_product_labels(pair, keep, SL_PRODUCT_ROWS, &all);
        alone = order.count;
        order = sl_product_labels(pair, keep, SL_PRODUCT_COLUMNS, &all);
        alone = alone || order.count;
        if (inner && alone)
                return multiply_either(im, node, pair, keep, out, ret_made);
        return scale(im, node, pair, inner ? &pair[0].term : &all, keep, ret_made);
}

/* What the output or an operand outside of the pair has. False: more than one tensor can have. */
static bool wanted_of(const struct sl_contracted *operands, uint32_t n, uint32_t a, uint32_t b, const struct sl_term *out,
        struct sl_term *ret_keep)
{
        struct sl_contracted pair[2] = {operands[a], operands[b]};
        struct sl_term all, keep = {.count = 0};

        if (!unite(pair, out, &all))
                return false;
        for (uint32_t i = 0; i < all.count; i++) {
                bool wanted = sl_term_has(out, all.labels[i]);

                for (uint32_t k = 0; k < n; k++)
                        wanted |= k != a && k != b && sl_term_has(&operands[k].term, all.labels[i]);
                if (wanted)
                        sl_term_append(&keep, all.labels[i]);
        }
        *ret_keep = keep;
        return true;
}

/* The pair whose product is smallest, the first of them; false: no pair fits. */
static bool choose_pair(
        const struct sl_contracted *operands, uint32_t n, const struct sl_term *out, uint32_t *ret_a, uint32_t *ret_b)
{
        double least = HUGE_VAL;

        for (uint32_t a = 0; a < n; a++)
                for (uint32_t b = a + 1; b < n; b++) {
                        struct sl_contracted pair[2] = {operands[a], operands[b]};
                        struct sl_term keep;
                        double elements = 1;

                        if (!wanted_of(operands, n, a, b, out, &keep))
                                continue;
                        for (uint32_t i = 0; i < keep.count; i++) {
                                int64_t size = sl_product_size(pair, keep.labels[i]);

                                elements *= size < 0 ? SL_PRODUCT_NOMINAL_SIZE : (double)size;
                        }
                        if (elements >= least)
                                continue;
                        least = elements;
                        *ret_a = a;
                        *ret_b = b;
                }
        return least < HUGE_VAL;
}

static int finish(
        struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_contracted *made, const struct sl_term *out)
{
        struct sl_draft last = {.op = SL_OP_IDENTITY, .n_inputs = 1, .n_outputs = 1, .inputs = {made->value}};
        int64_t perm[SL_TERM_LABELS_MAX];
        int result = 0;

        if (made->term.count != out->count)
                return 0;
        if (memcmp(made->term.labels, out->labels, out->count)) {
                for (uint32_t i = 0; i < out->count; i++)
                        perm[i] = sl_term_at(&made->term, out->labels[i]);
                last.op = SL_OP_TRANSPOSE;
                result = sl_attrs_set_ints(&last.attrs, SL_ATTR_PERM, perm, out->count);
        }
        if (result == 0)
                result = sl_import_emit_last(im, node, &last);
        return result < 0 ? result : 1;
}

int sl_import_contract(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_contracted *operands, uint32_t n_operands,
        const struct sl_term *out)
{
        int result = 1;

        for (uint32_t i = 0; i < n_operands; i++)
                if (has_zero(&operands[i]))
                        return 0;
        while (n_operands > 1 && result == 1) {
                struct sl_contracted pair[2];
                struct sl_term keep;
                uint32_t a = 0, b = 0;

                if (!choose_pair(operands, n_operands, out, &a, &b) || !wanted_of(operands, n_operands, a, b, out, &keep))
                        return 0;
                pair[0] = operands[a];
                pair[1] = operands[b];
                result = contract_pair(im, node, pair, &keep, n_operands == 2 ? out : NULL, &operands[a]);
                operands[b] = operands[--n_operands];
        }
        if (result == 1)
                result = sum_alone(im, node, &operands[0], NULL, out);
        else
                return result;
        return result < 0 ? result : finish(im, node, &operands[0], out);
}
