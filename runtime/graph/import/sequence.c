/* SPDX-License-Identifier: Apache-2.0 */
#include "import/sequence.h"

#include "import/canonical.h"
#include "import/expand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CONCAT_MAX 64

void sl_sequences_deinit(struct sl_sequences *sequences)
{
        for (uint32_t i = 0; i < sequences->n; i++)
                free(sequences->items[i].values);
        free(sequences->items);
        *sequences = (struct sl_sequences){0};
}

/* A new list with room for @n values. Return: 1 and its place. */
static int add_list(struct sl_importer *im, bool optional, uint64_t n, uint32_t *ret_sequence)
{
        struct sl_sequences *all = im->sequences;
        uint32_t room = all->n < all->room ? all->room : all->room ? 2 * all->room : 16;
        struct sl_sequence *grown = room == all->room ? all->items : realloc(all->items, room * sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        all->items = grown;
        all->room = room;
        all->n_values += n + 1;
        if (all->n_values > im->limits->values)
                return sl_error_set(im->error, E2BIG, "the sequences have more than %u values together", im->limits->values);
        all->items[all->n] = (struct sl_sequence){.optional = optional, .values = calloc(n + 1, sizeof(uint32_t))};
        if (!all->items[all->n].values)
                return -ENOMEM;
        *ret_sequence = ++all->n;
        return 0;
}

static struct sl_sequence *list_at(const struct sl_importer *im, uint32_t sequence)
{
        return &im->sequences->items[sequence - 1];
}

static void push(struct sl_importer *im, uint32_t sequence, uint32_t value)
{
        struct sl_sequence *list = list_at(im, sequence);

        list->values[list->n++] = value;
}

int sl_import_held(struct sl_importer *im, uint32_t value, uint32_t *ret_sequence)
{
        int result = add_list(im, true, 1, ret_sequence);

        if (result == 0)
                push(im, *ret_sequence, value);
        return result;
}

/* The list of an outer graph, of values that the body reads of it. */
static uint32_t capture_list(struct sl_importer *im, uint32_t sequence)
{
        uint32_t n = list_at(im, sequence)->n, inner = list_at(im, sequence)->inner, copy;

        inner = inner ? capture_list(im, inner) : 0;
        if (add_list(im, list_at(im, sequence)->optional, n, &copy) < 0)
                return 0;
        list_at(im, copy)->inner = inner;
        for (uint32_t i = 0; i < n; i++) {
                uint32_t value = sl_import_capture(im, list_at(im, sequence)->values[i]);

                if (value == SL_VALUE_NONE)
                        return 0;
                push(im, copy, value);
        }
        return copy;
}

uint32_t sl_import_find_sequence(struct sl_importer *im, const char *name)
{
        struct sl_symbol *symbol = *name ? sl_symbols_find(&im->symbols, name) : NULL;
        uint32_t sequence;

        if (symbol)
                return symbol->sequence;
        sequence = im->outer && *name ? sl_import_find_sequence(im->outer, name) : 0;
        return !sequence || im->graph == im->outer->graph ? sequence : capture_list(im, sequence);
}

void sl_import_bind_sequence(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t output, uint32_t sequence)
{
        const char *name = output < node->proto->n_output ? node->proto->output[output] : "";
        struct sl_symbol *symbol = *name ? sl_symbols_find(&im->symbols, name) : NULL;

        if (symbol)
                symbol->sequence = sequence;
}

static const char *input_of(const struct sl_onnx_node *node, uint32_t index)
{
        return index < node->proto->n_input ? node->proto->input[index] : "";
}

/* Input @index as a tensor. */
static int find_tensor(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t index, uint32_t *ret_value)
{
        *ret_value = *input_of(node, index) ? sl_import_find(im, input_of(node, index)) : SL_VALUE_NONE;
        if (*ret_value != SL_VALUE_NONE && sl_vocabulary_of(im, *ret_value))
                return sl_import_refuse(im, node, "it works on strings");
        return *ret_value == SL_VALUE_NONE ? sl_import_refuse(im, node, "an input is missing, or is no tensor") : 0;
}

static int find_list(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t *ret_sequence)
{
        *ret_sequence = sl_import_find_sequence(im, input_of(node, 0));
        if (*ret_sequence && !list_at(im, *ret_sequence)->optional)
                return 0;
        return sl_import_refuse(im, node, "its first input is no sequence that is known when the model is loaded");
}

static int bind_list(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t sequence)
{
        sl_import_bind_sequence(im, node, 0, sequence);
        return 1;
}

static int bind_value(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t value)
{
        int result = sl_import_bind(im, node, value);

        return result < 0 ? result : 1;
}

/* All integers of a constant; @ret_scalar: it has no dimension. */
static int read_integers(
        struct sl_importer *im, const struct sl_onnx_node *node, uint32_t value, int64_t *ret_first, uint64_t *ret_n)
{
        const struct sl_tensor *tensor = &im->graph->values[value].tensor;

        *ret_n = sl_shape_is_static(&tensor->shape) ? sl_shape_elements(&tensor->shape) : 0;
        if (!sl_graph_constant(im->graph, value))
                return sl_import_refuse(im, node, "data decide a position or a length");
        if ((tensor->dtype != SL_DTYPE_I64 && tensor->dtype != SL_DTYPE_I32) || tensor->shape.rank > 1)
                return sl_import_wrong(im, node, "a position or a length is no integer");
        if (*ret_n && ret_first)
                *ret_first = tensor->dtype == SL_DTYPE_I64 ? *(const int64_t *)sl_graph_constant(im->graph, value)
                                                           : *(const int32_t *)sl_graph_constant(im->graph, value);
        return 0;
}

static int64_t integer_at(const struct sl_graph *graph, uint32_t value, uint64_t i)
{
        const void *data = sl_graph_constant(graph, value);

        return graph->values[value].tensor.dtype == SL_DTYPE_I64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

/* The position that input @index gives among @n, or @fallback where it is left out. */
static int read_position(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t index, uint32_t n, uint32_t fallback,
        uint32_t *ret_position)
{
        uint32_t value;
        int64_t position = 0;
        uint64_t count;
        int result;

        *ret_position = fallback;
        if (!*input_of(node, index))
                return 0;
        result = find_tensor(im, node, index, &value);
        if (result == 0)
                result = read_integers(im, node, value, &position, &count);
        if (result == 0 && count != 1)
                result = sl_import_wrong(im, node, "its position is not one integer");
        if (result < 0)
                return result;
        position += position < 0 ? (int64_t)list_at(im, sl_import_find_sequence(im, input_of(node, 0)))->n : 0;
        if (position < 0 || position >= n)
                return sl_error_set(im->error, EBADMSG, "node \"%s\": position %" PRId64 " of its sequence, which has %u places",
                        node->name, position, n);
        *ret_position = (uint32_t)position;
        return 0;
}

int sl_canonical_sequence_empty(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t sequence;
        int result = add_list(im, false, 0, &sequence);

        (void)draft;
        return result < 0 ? result : bind_list(im, node, sequence);
}

int sl_canonical_sequence_construct(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t sequence, value;
        int result = add_list(im, false, node->proto->n_input, &sequence);

        (void)draft;
        for (uint32_t i = 0; i < node->proto->n_input && result == 0; i++) {
                result = find_tensor(im, node, i, &value);
                if (result == 0)
                        push(im, sequence, value);
        }
        return result < 0 ? result : bind_list(im, node, sequence);
}

int sl_canonical_sequence_insert(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t sequence, copy, position, value, n;
        int result = find_list(im, node, &sequence);

        (void)draft;
        if (result == 0)
                result = find_tensor(im, node, 1, &value);
        if (result < 0)
                return result;
        n = list_at(im, sequence)->n;
        result = read_position(im, node, 2, n + 1, n, &position);
        if (result == 0)
                result = add_list(im, false, n + 1ull, &copy);
        if (result < 0)
                return result;
        for (uint32_t i = 0; i <= n; i++)
                push(im, copy, i == position ? value : list_at(im, sequence)->values[i - (i > position)]);
        return bind_list(im, node, copy);
}

int sl_canonical_sequence_erase(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t sequence, copy, position, n;
        int result = find_list(im, node, &sequence);

        (void)draft;
        if (result < 0)
                return result;
        n = list_at(im, sequence)->n;
        if (!n)
                return sl_import_wrong(im, node, "its sequence is empty");
        result = read_position(im, node, 1, n, n - 1, &position);
        if (result == 0)
                result = add_list(im, false, n, &copy);
        if (result < 0)
                return result;
        for (uint32_t i = 0; i < n; i++)
                if (i != position)
                        push(im, copy, list_at(im, sequence)->values[i]);
        return bind_list(im, node, copy);
}

int sl_canonical_sequence_length(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t sequence, value;
        int64_t n;
        int result = find_list(im, node, &sequence);

        (void)draft;
        if (result < 0)
                return result;
        n = list_at(im, sequence)->n;
        result = sl_import_ints(im, node->name, &n, 1, true, &value);
        return result < 0 ? result : bind_value(im, node, value);
}

/* Cuts one dimension of a tensor into pieces. */
struct cut {
        uint32_t value, axis;
        int64_t size, next;
        bool keeps; /* the dimension, of pieces of one */
};

static int push_piece(struct sl_expansion *x, struct cut *cut, int64_t length, uint32_t sequence)
{
        int64_t axis = cut->axis;
        struct sl_draft squeeze = {.op = SL_OP_SQUEEZE, .n_inputs = 1};
        uint32_t piece = sl_expand_slice(x, cut->value, axis, cut->next, cut->next + length);

        cut->next += length;
        if (!cut->keeps) {
                squeeze.inputs[0] = piece;
                if (x->result == 0)
                        x->result = sl_attrs_set_ints(&squeeze.attrs, SL_ATTR_AXES, &axis, 1);
                piece = sl_expand(x, &squeeze);
        }
        if (x->result == 0)
                push(x->im, sequence, piece);
        return x->result;
}

/* Pieces of one length, but for the last one. */
static int cut_evenly(struct sl_expansion *x, struct cut *cut, int64_t length, uint32_t *ret_sequence)
{
        int result;

        if (length < 1)
                return sl_import_wrong(x->im, x->node, "its pieces have no length");
        result = add_list(x->im, false, (uint64_t)(cut->size / length + 1), ret_sequence);
        while (result == 0 && cut->next < cut->size)
                result = push_piece(x, cut, cut->size - cut->next < length ? cut->size - cut->next : length, *ret_sequence);
        return result;
}

static int cut_by_list(struct sl_expansion *x, struct cut *cut, uint32_t lengths, uint64_t n, uint32_t *ret_sequence)
{
        int result = add_list(x->im, false, n, ret_sequence);

        for (uint64_t i = 0; i < n && result == 0; i++) {
                int64_t length = integer_at(x->im->graph, lengths, i);

                if (length < 0 || length > cut->size - cut->next)
                        return sl_import_misfit(x->im, x->node, "its lengths exceed what is cut");
                result = push_piece(x, cut, length, *ret_sequence);
        }
        if (result == 0 && cut->next != cut->size)
                return sl_import_misfit(x->im, x->node, "its lengths are less than what is cut");
        return result;
}

/* Data say how long each of so many pieces is; how many there are is known. */
static int cut_by_data(struct sl_expansion *x, const struct cut *cut, uint32_t lengths, uint32_t *ret_sequence)
{
        const struct sl_tensor *tensor = &x->im->graph->values[lengths].tensor;
        uint32_t pieces[SL_NODE_OUTPUTS_MAX], n = (uint32_t)tensor->shape.dims[0];
        struct sl_draft split = {.op = SL_OP_SPLIT, .n_inputs = 2, .n_outputs = n, .inputs = {cut->value, lengths}};

        if (tensor->dtype != SL_DTYPE_I64)
                split.inputs[1] = sl_expand_cast(x, lengths, SL_DTYPE_I64);
        if (x->result == 0)
                x->result = sl_attrs_set_int(&split.attrs, SL_ATTR_AXIS, cut->axis);
        sl_expand_several(x, &split, pieces);
        if (x->result == 0)
                x->result = add_list(x->im, false, n, ret_sequence);
        for (uint32_t i = 0; i < n && x->result == 0; i++)
                push(x->im, *ret_sequence, pieces[i]);
        return x->result;
}

static bool is_told_by_data(const struct sl_graph *graph, uint32_t lengths)
{
        const struct sl_tensor *tensor = &graph->values[lengths].tensor;

        return !sl_graph_is_constant(graph, lengths) && (tensor->dtype == SL_DTYPE_I64 || tensor->dtype == SL_DTYPE_I32) &&
               tensor->shape.rank == 1 && tensor->shape.dims[0] > 0 && tensor->shape.dims[0] <= SL_NODE_OUTPUTS_MAX;
}

static int read_cut(struct sl_expansion *x, struct cut *cut)
{
        int64_t axis = sl_expand_int(x, "axis", 0), keeps = sl_expand_int(x, "keepdims", 1);
        const struct sl_shape *shape = sl_expand_shape(x, cut->value);

        axis += axis < 0 ? shape->rank : 0;
        if (x->result == 0 && (axis < 0 || axis >= shape->rank))
                return sl_import_wrong(x->im, x->node, "its axis is outside the input's rank");
        if (x->result < 0)
                return x->result;
        if (shape->dims[axis] == SL_DIM_BATCH)
                return sl_import_wants_batch(x->im, x->node, "it cuts the batch into a sequence");
        if (shape->dims[axis] < 0)
                return sl_import_refuse(x->im, x->node, "it cuts a dimension whose size data decide");
        cut->axis = (uint32_t)axis;
        cut->size = shape->dims[axis];
        cut->keeps = keeps || *input_of(x->node, 1);
        return 0;
}

int sl_canonical_split_to_sequence(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t lengths = SL_VALUE_NONE, sequence = 0;
        struct cut cut = {0};
        int64_t length = 1;
        uint64_t n = 0;
        int result = find_tensor(im, node, 0, &cut.value);

        (void)draft;
        if (result == 0)
                result = read_cut(&x, &cut);
        if (result == 0 && *input_of(node, 1)) {
                result = find_tensor(im, node, 1, &lengths);
                if (result == 0 && is_told_by_data(im->graph, lengths)) {
                        result = cut_by_data(&x, &cut, lengths, &sequence);
                        return result < 0 ? result : bind_list(im, node, sequence);
                }
                if (result == 0)
                        result = read_integers(im, node, lengths, &length, &n);
        }
        if (result < 0)
                return result;
        if (lengths == SL_VALUE_NONE || !im->graph->values[lengths].tensor.shape.rank)
                result = cut_evenly(&x, &cut, length, &sequence);
        else
                result = cut_by_list(&x, &cut, lengths, n, &sequence);
        return result < 0 ? result : bind_list(im, node, sequence);
}

static uint32_t join(struct sl_expansion *x, const uint32_t *values, uint32_t n, int64_t axis)
{
        struct sl_draft draft = {.op = SL_OP_CONCAT, .n_inputs = n};

        memcpy(draft.inputs, values, n * sizeof(*values));
        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, SL_ATTR_AXIS, axis);
        return sl_expand(x, &draft);
}

/* As many at a time as a node takes, in place, until there is one. */
static uint32_t join_all(struct sl_expansion *x, uint32_t *values, uint32_t n, int64_t axis)
{
        while (n > 1 && x->result == 0) {
                uint32_t made = 0;

                for (uint32_t i = 0; i < n; i += CONCAT_MAX)
                        values[made++] = join(x, values + i, n - i < CONCAT_MAX ? n - i : CONCAT_MAX, axis);
                n = made;
        }
        return values[0];
}

/* All are of one type and one shape, of which nothing but the batch is open. */
static bool are_alike(const struct sl_graph *graph, const struct sl_sequence *list)
{
        const struct sl_tensor *first = list->n ? &graph->values[list->values[0]].tensor : NULL;
        bool alike = first && first->shape.rank < SL_RANK_MAX;

        for (uint32_t i = 0; i < list->n && alike; i++) {
                const struct sl_tensor *tensor = &graph->values[list->values[i]].tensor;

                alike = tensor->dtype == first->dtype && sl_shape_equal(&tensor->shape, &first->shape);
                for (uint32_t d = 0; d < tensor->shape.rank && alike; d++)
                        alike = tensor->shape.dims[d] != SL_DIM_UNKNOWN;
        }
        return alike;
}

/* The element that data name, of those that are alike: they lie behind each other, and one of them is gathered. */
static int gather_one(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t sequence, uint32_t position)
{
        const int64_t lead = 0;
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_draft gather = {.op = SL_OP_GATHER, .n_inputs = 2};
        const struct sl_tensor *index = &im->graph->values[position].tensor;
        uint32_t n = list_at(im, sequence)->n, *values;

        if ((index->dtype != SL_DTYPE_I64 && index->dtype != SL_DTYPE_I32) || index->shape.rank)
                return sl_import_refuse(im, node, "data decide its position, which is no scalar");
        if (!are_alike(im->graph, list_at(im, sequence)))
                return sl_import_refuse(im, node, "data decide its position among tensors of several shapes or types");
        values = calloc(n, sizeof(*values));
        if (!values)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                values[i] = sl_expand_unsqueeze(&x, list_at(im, sequence)->values[i], &lead, 1);
        gather.inputs[0] = join_all(&x, values, n, 0);
        gather.inputs[1] = position;
        free(values);
        sl_expand_output(&x, 0, sl_expand(&x, &gather));
        return sl_expansion_end(&x);
}

int sl_canonical_sequence_at(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t sequence, position, value;
        int result = find_list(im, node, &sequence);

        (void)draft;
        if (result == 0 && !*input_of(node, 1))
                result = sl_import_wrong(im, node, "it wants a position");
        if (result == 0)
                result = find_tensor(im, node, 1, &value);
        if (result == 0 && !sl_graph_is_constant(im->graph, value) && list_at(im, sequence)->n)
                return gather_one(im, node, sequence, value);
        if (result == 0)
                result = read_position(im, node, 1, list_at(im, sequence)->n, 0, &position);
        return result < 0 ? result : bind_value(im, node, list_at(im, sequence)->values[position]);
}

int sl_canonical_concat_from_sequence(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        int64_t axis = sl_expand_int(&x, "axis", 0), new_axis = sl_expand_int(&x, "new_axis", 0);
        uint32_t sequence, n, *values;
        int result = find_list(im, node, &sequence);

        (void)draft;
        if (result == 0 && x.result < 0)
                result = x.result;
        if (result == 0 && !sl_onnx_attr(node, "axis"))
                result = sl_import_wrong(im, node, "it wants an axis");
        if (result == 0 && !list_at(im, sequence)->n)
                result = sl_import_wrong(im, node, "its sequence is empty");
        if (result < 0)
                return result;
        n = list_at(im, sequence)->n;
        values = malloc(n * sizeof(*values));
        if (!values)
                return -ENOMEM;
        memcpy(values, list_at(im, sequence)->values, n * sizeof(*values));
        for (uint32_t i = 0; i < n && new_axis; i++)
                values[i] = sl_expand_unsqueeze(&x, values[i], &axis, 1);
        sl_expand_output(&x, 0, n > 1 ? join_all(&x, values, n, axis) : values[0]);
        free(values);
        return sl_expansion_end(&x);
}

/* The inputs of the body for element @i: what is no sequence is the same for all of them. */
static int find_elements(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t i, uint32_t n, uint32_t *values)
{
        int result = 0;

        for (uint32_t k = 0; k < node->proto->n_input && result == 0; k++) {
                uint32_t sequence = sl_import_find_sequence(im, input_of(node, k));

                if (!sequence)
                        result = find_tensor(im, node, k, &values[k]);
                else if (list_at(im, sequence)->optional || list_at(im, sequence)->n != n)
                        result = sl_import_wrong(im, node, "its sequences have different lengths");
                else
                        values[k] = list_at(im, sequence)->values[i];
        }
        return result;
}

int sl_canonical_sequence_map(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t values[SL_NODE_INPUTS_MAX], outputs[SL_NODE_OUTPUTS_MAX], made[SL_NODE_OUTPUTS_MAX], sequence, n;
        uint32_t n_inputs = (uint32_t)node->proto->n_input, n_outputs = (uint32_t)node->proto->n_output;
        int result = find_list(im, node, &sequence);

        (void)draft;
        if (result == 0 && (node->proto->n_input > SL_NODE_INPUTS_MAX || node->proto->n_output > SL_NODE_OUTPUTS_MAX))
                result = sl_import_refuse(im, node, "more inputs or outputs than a node may have");
        if (result < 0)
                return result;
        n = list_at(im, sequence)->n;
        for (uint32_t k = 0; k < n_outputs && result == 0; k++)
                result = add_list(im, false, n, &made[k]);
        for (uint32_t i = 0; i < n && result == 0; i++) {
                result = find_elements(im, node, i, n, values);
                if (result == 0)
                        result = sl_import_inline(im, node, "body", values, n_inputs, outputs, n_outputs);
                for (uint32_t k = 0; k < n_outputs && result == 0; k++)
                        push(im, made[k], outputs[k]);
        }
        for (uint32_t k = 0; k < n_outputs && result == 0; k++)
                sl_import_bind_sequence(im, node, k, made[k]);
        return result < 0 ? result : 1;
}

int sl_canonical_optional(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t inner = sl_import_find_sequence(im, input_of(node, 0)), optional, value;
        int result = add_list(im, true, 1, &optional);

        (void)draft;
        if (result < 0)
                return result;
        if (inner && list_at(im, inner)->optional)
                return sl_import_wrong(im, node, "its input is an optional already");
        list_at(im, optional)->inner = inner;
        if (!inner && *input_of(node, 0)) {
                result = find_tensor(im, node, 0, &value);
                if (result < 0)
                        return result;
                push(im, optional, value);
        }
        return bind_list(im, node, optional);
}

/* Since opset 18 what is there already is its own element. */
int sl_canonical_optional_get(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t optional = sl_import_find_sequence(im, input_of(node, 0)), value;
        int result;

        (void)draft;
        if (!optional) {
                result = find_tensor(im, node, 0, &value);
                return result < 0 ? result : bind_value(im, node, value);
        }
        if (!list_at(im, optional)->optional)
                return bind_list(im, node, optional);
        if (list_at(im, optional)->inner)
                return bind_list(im, node, list_at(im, optional)->inner);
        if (!list_at(im, optional)->n)
                return sl_import_wrong(im, node, "its optional is empty");
        return bind_value(im, node, list_at(im, optional)->values[0]);
}

int sl_canonical_optional_has(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        const struct sl_tensor tensor = {.dtype = SL_DTYPE_BOOL};
        uint32_t optional = sl_import_find_sequence(im, input_of(node, 0)), value;
        bool has = optional ? !list_at(im, optional)->optional || list_at(im, optional)->inner || list_at(im, optional)->n
                            : *input_of(node, 0);
        uint8_t *data = sl_graph_alloc(im->graph, 1);
        int result;

        (void)draft;
        if (!data)
                return -ENOMEM;
        *data = has;
        result = sl_graph_add_constant(im->graph, node->name, &tensor, data, &value);
        return result < 0 ? result : bind_value(im, node, value);
}
