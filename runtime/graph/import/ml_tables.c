/* SPDX-License-Identifier: Apache-2.0 */
/* Encoders: a table of keys, sorted, that each element is looked up in. Words are places in a vocabulary. */
#include "import/ml.h"

#include "base/cleanup.h"

#include <math.h>
#include <string.h>

/* Keys or values as the file has them. */
struct column {
        uint32_t dtype;
        const void *data;
        size_t n;
        uint32_t vocabulary; /* of words, 0: they are numbers */
};

struct key {
        int64_t integer;
        double real;
        size_t at;
};

/* NaN is one number, behind all others; of equal keys the first in the file comes first. */
static int compare_keys(const void *a, const void *b)
{
        const struct key *x = a, *y = b;
        int order = (x->integer > y->integer) - (x->integer < y->integer);

        if (!order)
                order = isnan(x->real) || isnan(y->real) ? isnan(x->real) - isnan(y->real)
                                                         : (x->real > y->real) - (x->real < y->real);
        return order ? order : (x->at > y->at) - (x->at < y->at);
}

static bool read_key(const struct column *keys, size_t i, struct key *key)
{
        *key = (struct key){.at = i};
        switch (keys->dtype) {
        case SL_DTYPE_F32:
                key->real = (double)((const float *)keys->data)[i];
                return true;
        case SL_DTYPE_F64:
                key->real = ((const double *)keys->data)[i];
                return true;
        case SL_DTYPE_I64:
                key->integer = ((const int64_t *)keys->data)[i];
                return true;
        case SL_DTYPE_I32:
                key->integer = ((const int32_t *)keys->data)[i];
                return true;
        case SL_DTYPE_I16:
                key->integer = ((const int16_t *)keys->data)[i];
                return true;
        default:
                return false;
        }
}

static bool same_key(const struct key *a, const struct key *b)
{
        return a->integer == b->integer && (a->real == b->real || (isnan(a->real) && isnan(b->real)));
}

/* Sorted, each key once; how many there are. 0: the expansion has failed. */
static size_t sort_keys(struct sl_expansion *x, const struct column *keys, struct key *sorted)
{
        size_t kept = 0;

        for (size_t i = 0; i < keys->n; i++)
                if (!read_key(keys, i, &sorted[i]))
                        sl_expand_refuse(x, "keys of this type are not supported");
        if (x->result < 0)
                return 0;
        qsort(sorted, keys->n, sizeof(*sorted), compare_keys);
        for (size_t i = 0; i < keys->n; i++)
                if (!kept || !same_key(&sorted[kept - 1], &sorted[i]))
                        sorted[kept++] = sorted[i];
        return kept;
}

/* Those of the elements of @from that @sorted names, then @more. */
static uint32_t take(struct sl_expansion *x, const struct column *from, const struct key *sorted, size_t n, const void *more)
{
        size_t bytes = sl_dtype_bytes(from->dtype);
        SL_CLEANUP(sl_cleanup_free) char *data = malloc((n + 1) * bytes);

        if (!data) {
                x->result = x->result ? x->result : -ENOMEM;
                return SL_VALUE_NONE;
        }
        for (size_t i = 0; i < n; i++)
                memcpy(data + i * bytes, (const char *)from->data + sorted[i].at * bytes, bytes);
        if (more)
                memcpy(data + n * bytes, more, bytes);
        return sl_ml_vector(x, from->dtype, data, n + (more != NULL));
}

/* The value of each element's key, or @other; without that an element that has none is an error of the request. */
static uint32_t look_up(
        struct sl_expansion *x, uint32_t elements, const struct column *keys, const struct column *values, const void *other)
{
        struct sl_draft draft = {.op = SL_OP_LOOKUP, .n_inputs = 3, .inputs = {elements}};
        SL_CLEANUP(sl_cleanup_free) struct key *sorted = calloc(keys->n + 1, sizeof(*sorted));
        size_t n;

        if (!sorted && x->result == 0)
                x->result = -ENOMEM;
        if (x->result == 0 && (!keys->n || keys->n != values->n))
                sl_expand_wrong(x, "its keys and values are not one for one");
        if (x->result == 0 && sl_expand_dtype(x, elements) != keys->dtype)
                sl_expand_wrong(x, "its keys are not of the type of its input");
        if (x->result < 0)
                return SL_VALUE_NONE;
        n = sort_keys(x, keys, sorted);
        draft.inputs[1] = take(x, keys, sorted, n, NULL);
        draft.inputs[2] = take(x, values, sorted, n, other);
        return sl_expand(x, &draft);
}

static bool take_tensor(struct sl_expansion *x, const char *name, struct column *column)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(x->node, name);
        uint32_t index = SL_VALUE_NONE;

        if (!attr || !attr->t || x->result < 0)
                return false;
        x->result = sl_import_tensor(x->im, attr->t, x->node->name, &index);
        if (x->result < 0)
                return false;
        column->dtype = x->im->graph->values[index].tensor.dtype;
        column->data = x->im->graph->values[index].data;
        column->n = sl_shape_elements(&x->im->graph->values[index].tensor.shape);
        return true;
}

/* What is looked up are places in the vocabulary of input 0. */
static void find_words(struct sl_expansion *x, const ProtobufCBinaryData *words, size_t n, struct column *column)
{
        uint32_t vocabulary = x->node->n_inputs ? sl_vocabulary_of(x->im, x->node->inputs[0]) : 0;
        int64_t *places = NULL;

        if (!vocabulary)
                sl_expand_wrong(x, "it encodes strings, and its input has none");
        if (x->result == 0)
                x->result = sl_vocabulary_find_all(x->im, vocabulary, x->node->name, words, n, &places);
        *column = (struct column){.dtype = SL_DTYPE_I64, .data = places, .n = n, .vocabulary = vocabulary};
}

/* Words that go out have a vocabulary of their own. */
static void list_words(struct sl_expansion *x, const ProtobufCBinaryData *words, size_t n, struct column *column)
{
        int64_t *places = NULL;

        *column = (struct column){.dtype = SL_DTYPE_I64, .n = n};
        if (x->result == 0)
                x->result = sl_vocabulary_new(x->im, &column->vocabulary);
        if (x->result == 0)
                x->result = sl_vocabulary_add_all(x->im, column->vocabulary, x->node->name, words, n, &places);
        column->data = places;
}

/* The strings of attribute @list, or of the tensor in @tensor. */
static const ProtobufCBinaryData *strings_of(struct sl_expansion *x, const char *list, const char *tensor, size_t *ret_n)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(x->node, tensor);
        const ProtobufCBinaryData *strings = sl_ml_strings(x, list, ret_n);

        if (strings || !attr || !attr->t || !attr->t->has_data_type || attr->t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
                return strings;
        *ret_n = attr->t->n_string_data;
        return *ret_n ? attr->t->string_data : NULL;
}

static bool are_keys(const char *kind)
{
        return !strcmp(kind, "keys");
}

/* Attributes "keys_tensor", "keys_int64s", "keys_floats" or "keys_strings", and the same of values. */
static struct column read_column(struct sl_expansion *x, const char *kind)
{
        char tensor[32], ints[32], floats[32], words[32];
        const ProtobufCBinaryData *strings;
        struct column column = {0};
        size_t n;

        snprintf(tensor, sizeof(tensor), "%s_tensor", kind);
        snprintf(ints, sizeof(ints), "%s_int64s", kind);
        snprintf(floats, sizeof(floats), "%s_floats", kind);
        snprintf(words, sizeof(words), "%s_strings", kind);
        strings = strings_of(x, words, tensor, &n);
        if (strings) {
                if (are_keys(kind))
                        find_words(x, strings, n, &column);
                else
                        list_words(x, strings, n, &column);
                return column;
        }
        if (are_keys(kind) && x->node->n_inputs && sl_vocabulary_of(x->im, x->node->inputs[0]))
                sl_expand_wrong(x, "its input has strings, and its keys are numbers");
        if (x->result < 0 || take_tensor(x, tensor, &column))
                return column;
        column.dtype = SL_DTYPE_I64;
        column.data = sl_ml_ints(x, ints, &column.n);
        if (column.n)
                return column;
        column.dtype = SL_DTYPE_F32;
        column.data = sl_ml_floats(x, floats, &column.n);
        if (!column.n)
                sl_expand_wrong(x, "it has no keys or no values");
        return column;
}

/* The place of attribute default_string, "_Unused" without one, among the words that go out. */
static int64_t default_word(struct sl_expansion *x, const struct column *values)
{
        static const char unused[] = "_Unused";
        ProtobufCBinaryData word = {sizeof(unused) - 1, (uint8_t *)unused};
        const Onnx__AttributeProto *attr = sl_onnx_attr(x->node, "default_string");
        int64_t place = -1;
        size_t n;

        if (attr && attr->has_s)
                word = attr->s;
        attr = sl_onnx_attr(x->node, "default_tensor");
        if (attr && attr->t && attr->t->n_string_data == 1)
                word = *strings_of(x, "", "default_tensor", &n);
        if (x->result == 0)
                x->result = sl_vocabulary_add(x->im, values->vocabulary, x->node->name, &word, &place);
        return place;
}

static int64_t *count_up(struct sl_expansion *x, size_t n);

/* Words to numbers or numbers to words, as the input is: what opset 1 of LabelEncoder and CategoryMapper do. */
static int encode_both_ways(struct sl_expansion *x, const ProtobufCBinaryData *words, size_t n, const int64_t *numbers)
{
        struct column ints = {.dtype = SL_DTYPE_I64, .data = numbers, .n = n}, places = {0};
        bool reads = x->node->n_inputs && sl_vocabulary_of(x->im, x->node->inputs[0]);
        int64_t other;

        if (reads)
                find_words(x, words, n, &places);
        else
                list_words(x, words, n, &places);
        other = reads ? sl_expand_int(x, "default_int64", -1) : default_word(x, &places);
        sl_ml_output(x, 0, look_up(x, sl_expand_input(x, 0), reads ? &places : &ints, reads ? &ints : &places, &other),
                reads ? 0 : places.vocabulary);
        return sl_expansion_end(x);
}

SL_ML(category_mapper)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        size_t n_words, n;
        const ProtobufCBinaryData *words = sl_ml_strings(&x, "cats_strings", &n_words);
        const int64_t *numbers = sl_ml_ints(&x, "cats_int64s", &n);

        (void)draft;
        if (!words || n_words != n)
                sl_expand_wrong(&x, "its cats_int64s and cats_strings are not one for one");
        return x.result < 0 ? x.result : encode_both_ways(&x, words, n, numbers);
}

SL_ML(label_encoder)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        size_t n_classes;
        const ProtobufCBinaryData *classes = sl_ml_strings(&x, "classes_strings", &n_classes);
        SL_CLEANUP(sl_cleanup_free) int64_t *numbers = classes ? count_up(&x, n_classes) : NULL;
        struct column keys, values, other = {0};
        int64_t integer;

        (void)draft;
        if (classes)
                return x.result < 0 ? x.result : encode_both_ways(&x, classes, n_classes, numbers);
        keys = read_column(&x, "keys");
        values = read_column(&x, "values");
        integer = values.vocabulary ? default_word(&x, &values) : sl_expand_int(&x, "default_int64", -1);
        float real = (float)sl_expand_float(&x, "default_float", -0.0);
        const char zero[8] = {0};
        const void *fallback = values.dtype == SL_DTYPE_I64   ? (const void *)&integer
                               : values.dtype == SL_DTYPE_F32 ? &real
                                                              : (const void *)zero;

        if (!values.vocabulary && take_tensor(&x, "default_tensor", &other)) {
                if (other.dtype != values.dtype || !other.n)
                        sl_expand_wrong(&x, "its default is not of the type of its values");
                fallback = other.data;
        }
        sl_ml_output(&x, 0, look_up(&x, sl_expand_input(&x, 0), &keys, &values, fallback), values.vocabulary);
        return sl_expansion_end(&x);
}

/* The numbers 0, 1, ... */
static int64_t *count_up(struct sl_expansion *x, size_t n)
{
        int64_t *numbers = malloc((n + 1) * sizeof(*numbers));

        for (size_t i = 0; numbers && i < n; i++)
                numbers[i] = (int64_t)i;
        if (!numbers && x->result == 0)
                x->result = -ENOMEM;
        return numbers;
}

/* Each element becomes a row with a 1 at the place of its category. */
SL_ML(one_hot_encoder)
{
        static const int64_t nowhere = -1;
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t value = sl_expand_cast(&x, sl_expand_input(&x, 0), SL_DTYPE_I64), places;
        size_t n_words;
        const ProtobufCBinaryData *words = sl_ml_strings(&x, "cats_strings", &n_words);
        struct column keys = {.dtype = SL_DTYPE_I64}, values = {.dtype = SL_DTYPE_I64};
        SL_CLEANUP(sl_cleanup_free) int64_t *numbers = NULL;
        int64_t axis = sl_expand_shape(&x, value)->rank;

        (void)draft;
        if (words)
                find_words(&x, words, n_words, &keys);
        else
                keys.data = sl_ml_ints(&x, "cats_int64s", &keys.n);
        if (!words && node->n_inputs && sl_vocabulary_of(im, node->inputs[0]))
                sl_expand_wrong(&x, "its input has strings, and its categories are numbers");
        numbers = count_up(&x, keys.n);
        values.data = numbers;
        values.n = keys.n;
        value = look_up(&x, value, &keys, &values, sl_expand_int(&x, "zeros", 1) ? &nowhere : NULL);
        value = sl_expand_unsqueeze(&x, value, &axis, 1);
        places = sl_ml_vector(&x, SL_DTYPE_I64, numbers, keys.n);
        sl_expand_output(&x, 0, sl_expand_cast(&x, sl_expand_binary(&x, SL_OP_EQUAL, value, places), SL_DTYPE_F32));
        return sl_expansion_end(&x);
}
