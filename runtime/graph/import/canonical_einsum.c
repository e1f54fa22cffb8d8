/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Einsum. Two operands that are a matrix product in other words become one: both are turned so that the dimensions that are summed
 * over meet, and the result is turned into the order that was asked for. Two that nothing is summed over become a Mul, one operand
 * a sum and a Transpose; everything else a chain of such (contract.h). Diagonals, sizes of 0, integers of few bits, and sizes of
 * which only a request says whether they broadcast stay an Einsum, whose equation becomes numbers (shape/einsum.h).
 */
#include "import/canonical.h"
#include "import/contract.h"

#include <string.h>

#define OPERANDS_MAX (SL_ATTR_INTS_MAX - 1)
#define LABELS_MAX   SL_TERM_LABELS_MAX

struct equation {
        struct sl_term operands[OPERANDS_MAX], out;
        uint32_t n_operands;
};

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static uint32_t count_letters(const char *text, size_t length, bool *ret_ellipsis)
{
        uint32_t letters = 0;

        *ret_ellipsis = false;
        for (size_t i = 0; i < length; i++) {
                letters += is_letter(text[i]);
                *ret_ellipsis |= text[i] == '.';
        }
        return letters;
}

/* One part of the equation; its ellipsis stands for the last @ellipsis of @most dimensions. */
static int read_term(const char *text, size_t length, uint32_t ellipsis, uint32_t most, struct sl_term *term)
{
        for (size_t i = 0; i < length; i++) {
                if (text[i] == ' ')
                        continue;
                if (!is_letter(text[i]) && strncmp(text + i, "...", 3) != 0)
                        return -1;
                if (is_letter(text[i]) ? term->count == LABELS_MAX : term->count + ellipsis > LABELS_MAX)
                        return -1;
                if (is_letter(text[i])) {
                        term->labels[term->count++] = (uint8_t)text[i];
                        continue;
                }
                for (uint32_t k = 0; k < ellipsis; k++)
                        term->labels[term->count++] = (uint8_t)(most - ellipsis + k + 1);
                i += 2;
        }
        return 0;
}

/* Without an arrow: the ellipsis, then what occurs once, in the order of the alphabet. */
static int imply_output(struct equation *e, uint32_t most)
{
        for (uint32_t i = 1; i <= most; i++)
                e->out.labels[e->out.count++] = (uint8_t)i;
        for (uint8_t label = 'A'; label <= 'z'; label++) {
                uint32_t count = 0;

                for (uint32_t k = 0; k < e->n_operands; k++)
                        for (uint32_t i = 0; i < e->operands[k].count; i++)
                                count += e->operands[k].labels[i] == label;
                if (count != 1)
                        continue;
                if (e->out.count == LABELS_MAX)
                        return -1;
                e->out.labels[e->out.count++] = label;
        }
        return 0;
}

static int parse(const struct sl_importer *im, const struct sl_draft *draft, const char *text, size_t length, struct equation *e)
{
        const char *arrow = memmem(text, length, "->", 2), *end = arrow ? arrow : text + length, *at = text;
        uint32_t ellipses[OPERANDS_MAX] = {0}, most = 0;

        /* Twice: the longest ellipsis says how the others are aligned. */
        for (int pass = 0; pass < 2; pass++, at = text)
                for (e->n_operands = 0;; e->n_operands++) {
                        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
                        uint32_t k = e->n_operands, rank, letters;
                        bool ellipsis;

                        if (k >= OPERANDS_MAX || k >= draft->n_inputs || draft->inputs[k] == SL_VALUE_NONE)
                                return -1;
                        rank = im->graph->values[draft->inputs[k]].tensor.shape.rank;
                        letters = count_letters(at, (size_t)(stop - at), &ellipsis);
                        if (ellipsis && rank < letters)
                                return -1;
                        ellipses[k] = ellipsis ? rank - letters : 0;
                        most = ellipses[k] > most ? ellipses[k] : most;
                        if (pass && read_term(at, (size_t)(stop - at), ellipses[k], most, &e->operands[k]) < 0)
                                return -1;
                        if (!comma) {
                                e->n_operands++;
                                break;
                        }
                        at = comma + 1;
                }
        if (arrow)
                return read_term(arrow + 2, (size_t)(text + length - arrow - 2), most, most, &e->out);
        return imply_output(e, most);
}

/* The four kinds of labels of a product of two: kept by both, summed over, kept of one alone. */
struct roles {
        struct sl_term batch, inner, rows, columns;
};

static bool is_twice(const struct sl_term *term)
{
        for (uint32_t i = 0; i < term->count; i++)
                for (uint32_t k = 0; k < i; k++)
                        if (term->labels[i] == term->labels[k])
                                return true;
        return false;
}

/* False when the product has a label that one operand sums over alone, or takes a diagonal. */
static bool find_roles(const struct equation *e, struct roles *roles)
{
        const struct sl_term *a = &e->operands[0], *b = &e->operands[1];

        if (e->n_operands != 2 || is_twice(a) || is_twice(b) || is_twice(&e->out))
                return false;
        for (uint32_t i = 0; i < e->out.count; i++) {
                uint8_t label = e->out.labels[i];

                if (!sl_term_has(a, label) && !sl_term_has(b, label))
                        return false;
                sl_term_append(sl_term_has(a, label) && sl_term_has(b, label) ? &roles->batch
                               : sl_term_has(a, label)                        ? &roles->rows
                                                                              : &roles->columns,
                        label);
        }
        for (uint32_t i = 0; i < a->count; i++) {
                if (!sl_term_has(&e->out, a->labels[i]) && !sl_term_has(b, a->labels[i]))
                        return false;
                if (!sl_term_has(&e->out, a->labels[i]))
                        sl_term_append(&roles->inner, a->labels[i]);
        }
        for (uint32_t i = 0; i < b->count; i++)
                if (!sl_term_has(&e->out, b->labels[i]) && !sl_term_has(a, b->labels[i]))
                        return false;
        return roles->inner.count > 0;
}

/* The output ends in what only the second operand has, then in what only the first has: their product the other way round needs
 * no turn. */
static bool is_backwards(const struct equation *e)
{
        const struct sl_term *a = &e->operands[0], *b = &e->operands[1];
        uint8_t last, before;

        if (e->n_operands != 2 || e->out.count < 2)
                return false;
        last = e->out.labels[e->out.count - 1];
        before = e->out.labels[e->out.count - 2];
        return sl_term_has(a, last) && !sl_term_has(b, last) && sl_term_has(b, before) && !sl_term_has(a, before);
}

static void swap_operands(struct sl_draft *draft, struct equation *e)
{
        struct sl_term term = e->operands[0];
        uint32_t value = draft->inputs[0];

        e->operands[0] = e->operands[1];
        e->operands[1] = term;
        draft->inputs[0] = draft->inputs[1];
        draft->inputs[1] = value;
}

static int64_t size_of(const struct sl_shape *shape, const struct sl_term *term, uint8_t label)
{
        const uint8_t *at = memchr(term->labels, label, term->count);

        return at ? shape->dims[at - term->labels] : SL_DIM_UNKNOWN;
}

/* The product of the sizes of the labels; negative when one is open. */
static int64_t extent_of(const struct sl_shape *shape, const struct sl_term *term, const struct sl_term *labels)
{
        int64_t extent = 1;

        for (uint32_t i = 0; i < labels->count; i++) {
                int64_t size = size_of(shape, term, labels->labels[i]);

                if (size < 0 || __builtin_mul_overflow(extent, size, &extent))
                        return -1;
        }
        return extent;
}

/* Groups of several labels are merged into one dimension; beside a batch, and where sizes are open, there must be one each. */
static bool is_product(const struct roles *roles, const struct equation *e, const struct sl_shape *a, const struct sl_shape *b)
{
        for (uint32_t i = 0; i < roles->inner.count; i++) {
                uint8_t label = roles->inner.labels[i];

                if (size_of(a, &e->operands[0], label) != size_of(b, &e->operands[1], label))
                        return false;
        }
        if (roles->batch.count)
                return roles->rows.count == 1 && roles->columns.count == 1 && roles->inner.count == 1;
        if (roles->inner.count > 1 && extent_of(a, &e->operands[0], &roles->inner) < 0)
                return false;
        return roles->rows.count && roles->columns.count &&
               (roles->columns.count == 1 || extent_of(b, &e->operands[1], &roles->columns) >= 0);
}

static int turn(struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_term *from, const struct sl_term *to,
        uint32_t *value)
{
        struct sl_draft transpose = {.op = SL_OP_TRANSPOSE, .n_inputs = 1, .n_outputs = 1, .inputs = {*value}};
        int64_t perm[LABELS_MAX];
        bool turned = false;
        int result;

        for (uint32_t i = 0; i < to->count; i++) {
                perm[i] = (const uint8_t *)memchr(from->labels, to->labels[i], from->count) - from->labels;
                turned |= perm[i] != i;
        }
        if (!turned)
                return 0;
        result = sl_attrs_set_ints(&transpose.attrs, SL_ATTR_PERM, perm, to->count);
        return result < 0 ? result : sl_import_emit_step(im, node, &transpose, value);
}

static int reshape(struct sl_importer *im, const struct sl_onnx_node *node, const int64_t *dims, uint32_t count, uint32_t *value)
{
        struct sl_draft draft = {.op = SL_OP_RESHAPE, .n_inputs = 1, .n_outputs = 1, .inputs = {*value}};
        int result = sl_attrs_set_ints(&draft.attrs, SL_ATTR_SHAPE, dims, count);

        return result < 0 ? result : sl_import_emit_step(im, node, &draft, value);
}

static struct sl_term joined(const struct sl_term *a, const struct sl_term *b, const struct sl_term *c)
{
        struct sl_term all = *a;

        for (uint32_t i = 0; i < b->count; i++)
                sl_term_append(&all, b->labels[i]);
        for (uint32_t i = 0; c && i < c->count; i++)
                sl_term_append(&all, c->labels[i]);
        return all;
}

/* The two operands, turned and merged: [batch, rows, inner] and [batch, inner, columns]. */
static int prepare(struct sl_importer *im, const struct sl_onnx_node *node, const struct equation *e, const struct roles *r,
        const struct sl_shape *a, const struct sl_shape *b, uint32_t values[2])
{
        struct sl_term left = joined(&r->batch, &r->rows, &r->inner), right = joined(&r->batch, &r->inner, &r->columns);
        int64_t dims[LABELS_MAX] = {0};
        int result = turn(im, node, &e->operands[0], &left, &values[0]);

        if (result == 0)
                result = turn(im, node, &e->operands[1], &right, &values[1]);
        if (result < 0 || (r->inner.count == 1 && r->columns.count == 1))
                return result;
        dims[r->rows.count] = extent_of(a, &e->operands[0], &r->inner);
        if (r->inner.count > 1)
                result = reshape(im, node, dims, r->rows.count + 1, &values[0]);
        dims[0] = r->inner.count > 1 ? extent_of(a, &e->operands[0], &r->inner) : 0;
        dims[1] = r->columns.count > 1 ? extent_of(b, &e->operands[1], &r->columns)
                                       : size_of(b, &e->operands[1], r->columns.labels[0]);
        if (result == 0 && dims[1] < 0)
                dims[1] = -1;
        return result < 0 ? result : reshape(im, node, dims, 2, &values[1]);
}

static int as_product(struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_draft *draft,
        const struct equation *e, const struct roles *r)
{
        const struct sl_shape a = im->graph->values[draft->inputs[0]].tensor.shape;
        const struct sl_shape b = im->graph->values[draft->inputs[1]].tensor.shape;
        struct sl_draft product = {.op = SL_OP_MATMUL, .n_inputs = 2, .n_outputs = 1},
                        last = {.op = SL_OP_TRANSPOSE, .n_inputs = 1};
        struct sl_term made = joined(&r->batch, &r->rows, &r->columns);
        int64_t dims[LABELS_MAX] = {0}, perm[LABELS_MAX];
        uint32_t values[2] = {draft->inputs[0], draft->inputs[1]}, value;
        int result = prepare(im, node, e, r, &a, &b, values);

        memcpy(product.inputs, values, sizeof(values));
        if (result == 0)
                result = sl_import_emit_step(im, node, &product, &value);
        for (uint32_t i = 0; i < r->columns.count; i++)
                dims[r->rows.count + i] = size_of(&b, &e->operands[1], r->columns.labels[i]);
        if (result == 0 && r->columns.count > 1)
                result = reshape(im, node, dims, r->rows.count + r->columns.count, &value);
        for (uint32_t i = 0; i < made.count; i++)
                perm[i] = (const uint8_t *)memchr(made.labels, e->out.labels[i], made.count) - made.labels;
        last.n_outputs = 1;
        last.inputs[0] = value;
        if (result == 0)
                result = sl_attrs_set_ints(&last.attrs, SL_ATTR_PERM, perm, made.count);
        if (result == 0)
                result = sl_import_emit_last(im, node, &last);
        return result < 0 ? result : 1;
}

/* The labels of @from that @to has, in the order of @to. */
static struct sl_term ordered(const struct sl_term *from, const struct sl_term *to)
{
        struct sl_term both = {.count = 0};

        for (uint32_t i = 0; i < to->count; i++)
                if (sl_term_has(from, to->labels[i]))
                        sl_term_append(&both, to->labels[i]);
        return both;
}

/* The positions in @of of the labels that @from lacks. */
static uint32_t list_missing(const struct sl_term *of, const struct sl_term *from, int64_t ret_axes[LABELS_MAX])
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < of->count; i++)
                if (!sl_term_has(from, of->labels[i]))
                        ret_axes[count++] = i;
        return count;
}

/* Is every label of the output there once, and no label twice in an operand? */
static bool is_plain(const struct equation *e)
{
        bool plain = !is_twice(&e->out);

        for (uint32_t k = 0; k < e->n_operands; k++)
                plain = plain && !is_twice(&e->operands[k]);
        for (uint32_t i = 0; i < e->out.count && plain; i++)
                plain = sl_term_has(&e->operands[0], e->out.labels[i]) ||
                        (e->n_operands > 1 && sl_term_has(&e->operands[1], e->out.labels[i]));
        return plain;
}

static int as_transpose(
        struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_draft *draft, const struct equation *e)
{
        const struct sl_term *from = &e->operands[0];
        struct sl_draft sum = {.op = SL_OP_REDUCE_SUM, .n_inputs = 1, .n_outputs = 1, .inputs = {draft->inputs[0]}};
        struct sl_draft last = {.op = SL_OP_TRANSPOSE, .n_inputs = 1, .n_outputs = 1, .inputs = {draft->inputs[0]}};
        struct sl_term left = ordered(&e->out, from);
        int64_t axes[LABELS_MAX], perm[LABELS_MAX];
        uint32_t n_axes = list_missing(from, &e->out, axes);
        int result = 0;

        if (n_axes) {
                result = sl_attrs_set_ints(&sum.attrs, SL_ATTR_AXES, axes, n_axes);
                if (result == 0)
                        result = sl_attrs_set_int(&sum.attrs, SL_ATTR_KEEPDIMS, 0);
                if (result == 0)
                        result = sl_import_emit_step(im, node, &sum, &last.inputs[0]);
        }
        for (uint32_t i = 0; i < left.count; i++)
                perm[i] = (const uint8_t *)memchr(left.labels, e->out.labels[i], left.count) - left.labels;
        if (result == 0)
                result = sl_attrs_set_ints(&last.attrs, SL_ATTR_PERM, perm, left.count);
        if (result == 0)
                result = sl_import_emit_last(im, node, &last);
        return result < 0 ? result : 1;
}

/* The operand in the order of the output, with a dimension of 1 for what it lacks. */
static int spread(struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_term *from, const struct sl_term *out,
        uint32_t *value)
{
        struct sl_draft unsqueeze = {.op = SL_OP_UNSQUEEZE, .n_inputs = 1, .n_outputs = 1};
        struct sl_term order = ordered(from, out);
        int64_t axes[LABELS_MAX];
        uint32_t n_axes = list_missing(out, from, axes);
        int result = turn(im, node, from, &order, value);

        if (result < 0 || !n_axes)
                return result;
        unsqueeze.inputs[0] = *value;
        result = sl_attrs_set_ints(&unsqueeze.attrs, SL_ATTR_AXES, axes, n_axes);
        return result < 0 ? result : sl_import_emit_step(im, node, &unsqueeze, value);
}

static int as_mul(struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_draft *draft, const struct equation *e)
{
        struct sl_draft mul = {.op = SL_OP_MUL, .n_inputs = 2, .n_outputs = 1};
        int result = 0;

        for (uint32_t k = 0; k < 2 && result == 0; k++) {
                mul.inputs[k] = draft->inputs[k];
                result = spread(im, node, &e->operands[k], &e->out, &mul.inputs[k]);
        }
        if (result == 0)
                result = sl_import_emit_last(im, node, &mul);
        return result < 0 ? result : 1;
}

static int64_t packed(const struct sl_term *term)
{
        uint64_t bits = 0;

        for (uint32_t i = 0; i < term->count; i++)
                bits |= (uint64_t)term->labels[i] << (8 * i);
        return (int64_t)bits;
}

static int keep(struct sl_draft *draft, const struct equation *e)
{
        int64_t parts[SL_ATTR_INTS_MAX];

        for (uint32_t k = 0; k < e->n_operands; k++)
                parts[k] = packed(&e->operands[k]);
        parts[e->n_operands] = packed(&e->out);
        return sl_attrs_set_ints(&draft->attrs, SL_ATTR_EQUATION, parts, e->n_operands + 1);
}

static bool ranks_fit(const struct sl_importer *im, const struct sl_draft *draft, const struct equation *e)
{
        for (uint32_t k = 0; k < e->n_operands; k++)
                if (e->operands[k].count != im->graph->values[draft->inputs[k]].tensor.shape.rank)
                        return false;
        return true;
}

/* Does the equation fit the operands? Else the operator itself says why not. */
static bool is_consistent(const struct sl_importer *im, const struct sl_draft *draft, const struct equation *e)
{
        struct sl_node_desc desc = {.op = SL_OP_EINSUM, .n_inputs = e->n_operands, .n_outputs = 1};
        struct sl_draft kept = *draft;

        if (keep(&kept, e) < 0)
                return false;
        desc.attrs = kept.attrs;
        for (uint32_t k = 0; k < e->n_operands; k++)
                desc.inputs[k] = im->graph->values[draft->inputs[k]].tensor;
        return sl_op_infer(&desc, NULL) == 0;
}

/* Sums and products of integers of few bits are not what those operators take. */
static bool is_float(const struct sl_importer *im, const struct sl_draft *draft)
{
        return sl_dtype_is_float(im->graph->values[draft->inputs[0]].tensor.dtype);
}

static bool has_no_sum(const struct equation *e)
{
        int64_t axes[LABELS_MAX];
        uint32_t n = 0;

        for (uint32_t k = 0; k < e->n_operands; k++)
                n += list_missing(&e->operands[k], &e->out, axes);
        return n == 0;
}

/* Products and sums of these are what MatMul and ReduceSum take. */
static bool is_summed(uint32_t dtype)
{
        return sl_dtype_is_float(dtype) || dtype == SL_DTYPE_I32 || dtype == SL_DTYPE_I64;
}

/* As sums and products in general; diagonals, and what has no such form, stay an Einsum. */
static int contract(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, const struct equation *e)
{
        struct sl_contracted operands[OPERANDS_MAX];
        bool whole = !is_twice(&e->out) && is_consistent(im, draft, e);
        int result;

        for (uint32_t k = 0; k < e->n_operands; k++) {
                operands[k] = sl_contracted_of(im, &e->operands[k], draft->inputs[k]);
                whole = whole && !is_twice(&e->operands[k]) && is_summed(im->graph->values[draft->inputs[k]].tensor.dtype);
        }
        result = whole ? sl_import_contract(im, node, operands, e->n_operands, &e->out) : 0;
        return result ? result : keep(draft, e);
}

int sl_canonical_einsum(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, "equation");
        struct equation e = {.n_operands = 0};
        struct roles roles = {.batch = {.count = 0}};

        if (!attr || !attr->has_s)
                return sl_import_wrong(im, node, "it wants an equation");
        /* The parser has no bytes for an empty string. */
        if (parse(im, draft, attr->s.len ? (const char *)attr->s.data : "", attr->s.len, &e) < 0 || e.n_operands != draft->n_inputs)
                return sl_import_wrong(im, node, "its equation and its inputs do not fit, or are too many");
        if (!ranks_fit(im, draft, &e))
                return keep(draft, &e);
        if (e.n_operands == 1 && is_plain(&e) && e.out.count && (has_no_sum(&e) || is_float(im, draft)))
                return as_transpose(im, node, draft, &e);
        if (e.n_operands == 2 && is_plain(&e) && e.out.count && has_no_sum(&e) && is_float(im, draft))
                return as_mul(im, node, draft, &e);
        if (is_backwards(&e))
                swap_operands(draft, &e);
        if (find_roles(&e, &roles) && is_product(&roles, &e, &im->graph->values[draft->inputs[0]].tensor.shape,
                                              &im->graph->values[draft->inputs[1]].tensor.shape))
                return as_product(im, node, draft, &e, &roles);
        return contract(im, node, draft, &e);
}
