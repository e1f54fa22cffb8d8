/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes under ONNX's names. The rows of import say which go over as they are and which are words; what they do not say, and
 * no row here, has no way back.
 */
#include "base/error.h"
#include "export/exporter.h"
#include "import/canonical.h"

#include <string.h>

/* Attributes that import renamed. Those without a name are written by what is the operator's own (node.c). */
static const struct {
        uint16_t op, attr;
        const char *name;
} renamed[] = {
        {SL_OP_LRN, SL_ATTR_AXIS, "size"},
        {SL_OP_LRN, SL_ATTR_VALUE, "bias"},
        {SL_OP_ARG_MAX, SL_ATTR_MODE, "select_last_index"},
        {SL_OP_ARG_MIN, SL_ATTR_MODE, "select_last_index"},
        {SL_OP_CAST, SL_ATTR_TO, "to"},
        {SL_OP_EYE_LIKE, SL_ATTR_TO, "dtype"},
        {SL_OP_HANN_WINDOW, SL_ATTR_TO, "output_datatype"},
        {SL_OP_HAMMING_WINDOW, SL_ATTR_TO, "output_datatype"},
        {SL_OP_BLACKMAN_WINDOW, SL_ATTR_TO, "output_datatype"},
        {SL_OP_MEL_WEIGHTS, SL_ATTR_TO, "output_datatype"},
        {SL_OP_DEPTH_TO_SPACE, SL_ATTR_BLOCK_SIZE, "blocksize"},
        {SL_OP_SPACE_TO_DEPTH, SL_ATTR_BLOCK_SIZE, "blocksize"},
        {SL_OP_SHAPE, SL_ATTR_STARTS, NULL},
        {SL_OP_SHAPE, SL_ATTR_ENDS, NULL},
        {SL_OP_CONSTANT_OF_SHAPE, SL_ATTR_VALUE, NULL},
        {SL_OP_CONSTANT_OF_SHAPE, SL_ATTR_TO, NULL},
        {SL_OP_LSTM, SL_ATTR_ACTIVATIONS, NULL},
        {SL_OP_LSTM, SL_ATTR_ACTIVATION_ALPHA, NULL},
        {SL_OP_LSTM, SL_ATTR_ACTIVATION_BETA, NULL},
        {SL_OP_GRU, SL_ATTR_ACTIVATIONS, NULL},
        {SL_OP_GRU, SL_ATTR_ACTIVATION_ALPHA, NULL},
        {SL_OP_GRU, SL_ATTR_ACTIVATION_BETA, NULL},
        {SL_OP_RNN, SL_ATTR_ACTIVATIONS, NULL},
        {SL_OP_RNN, SL_ATTR_ACTIVATION_ALPHA, NULL},
        {SL_OP_RNN, SL_ATTR_ACTIVATION_BETA, NULL},
        {SL_OP_EINSUM, SL_ATTR_EQUATION, NULL},
        {SL_OP_NGRAM, SL_ATTR_LENGTH, NULL},
        {SL_OP_RANDOM_NORMAL, SL_ATTR_TO, "dtype"},
        {SL_OP_RANDOM_UNIFORM, SL_ATTR_TO, "dtype"},
        {SL_OP_RANDOM_NORMAL_LIKE, SL_ATTR_TO, "dtype"},
        {SL_OP_RANDOM_UNIFORM_LIKE, SL_ATTR_TO, "dtype"},
        {SL_OP_BERNOULLI, SL_ATTR_TO, "dtype"},
        {SL_OP_MULTINOMIAL, SL_ATTR_TO, "dtype"},
};

#define N_RENAMED (sizeof(renamed) / sizeof(*renamed))

Onnx__AttributeProto *sl_export_attribute(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, int type)
{
        Onnx__AttributeProto *attribute = sl_export_alloc(e, sizeof(*attribute));

        if (!attribute)
                return NULL;
        onnx__attribute_proto__init(attribute);
        attribute->name = (char *)name;
        attribute->has_type = 1;
        attribute->type = (Onnx__AttributeProto__AttributeType)type;
        node->attribute[node->n_attribute++] = attribute;
        return attribute;
}

int sl_export_int(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, int64_t value)
{
        Onnx__AttributeProto *attribute = sl_export_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

        if (!attribute)
                return -ENOMEM;
        attribute->has_i = 1;
        attribute->i = value;
        return 0;
}

static int write_float(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, double value)
{
        Onnx__AttributeProto *attribute = sl_export_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

        if (!attribute)
                return -ENOMEM;
        attribute->has_f = 1;
        attribute->f = (float)value;
        return 0;
}

int sl_export_ints(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, const int64_t *values, size_t n)
{
        Onnx__AttributeProto *attribute = sl_export_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);

        if (!attribute)
                return -ENOMEM;
        attribute->ints = sl_export_alloc(e, n * sizeof(*values));
        if (!attribute->ints)
                return -ENOMEM;
        memcpy(attribute->ints, values, n * sizeof(*values));
        attribute->n_ints = n;
        return 0;
}

int sl_export_floats(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, const float *values, size_t n)
{
        Onnx__AttributeProto *attribute = sl_export_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);

        if (!attribute)
                return -ENOMEM;
        attribute->floats = sl_export_alloc(e, n * sizeof(*values));
        if (!attribute->floats)
                return -ENOMEM;
        memcpy(attribute->floats, values, n * sizeof(*values));
        attribute->n_floats = n;
        return 0;
}

int sl_export_string(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, const char *text, size_t length)
{
        Onnx__AttributeProto *attribute = sl_export_attribute(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
        uint8_t *copy = sl_export_alloc(e, length);

        if (!attribute || !copy)
                return -ENOMEM;
        memcpy(copy, text, length);
        attribute->has_s = 1;
        attribute->s = (ProtobufCBinaryData){.len = length, .data = copy};
        return 0;
}

static int write_as_it_is(struct sl_exporter *e, Onnx__NodeProto *node, const struct sl_attr *attr, const char *name)
{
        float floats[SL_ATTR_INTS_MAX];

        switch (attr->type) {
        case SL_ATTR_TYPE_INT:
                return sl_export_int(e, node, name, attr->i);
        case SL_ATTR_TYPE_FLOAT:
                return write_float(e, node, name, attr->f);
        case SL_ATTR_TYPE_INTS:
                return sl_export_ints(e, node, name, attr->ints, attr->count);
        default:
                for (uint32_t i = 0; i < attr->count; i++)
                        floats[i] = (float)attr->floats[i];
                return sl_export_floats(e, node, name, floats, attr->count);
        }
}

static const struct sl_canonical_words *find_words(uint32_t op, uint32_t attr)
{
        for (const struct sl_canonical_words *words = sl_canonical_words_of(op); words && words->name; words++)
                if (words->id == attr)
                        return words;
        return NULL;
}

/* The number is a place among the words. */
static int write_word(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node, const struct sl_attr *attr,
        const struct sl_canonical_words *words)
{
        const char *word = words->words;

        for (int64_t place = 0; place < attr->i && *word; place++) {
                word += strcspn(word, " ");
                word += strspn(word, " ");
        }
        if (attr->type != SL_ATTR_TYPE_INT || attr->i < 0 || !*word)
                return sl_export_refuse(e, from, words->name);
        return sl_export_string(e, node, words->name, word, strcspn(word, " "));
}

static size_t find_renamed(uint32_t op, uint32_t attr)
{
        size_t i = 0;

        while (i < N_RENAMED && (renamed[i].op != op || renamed[i].attr != attr))
                i++;
        return i;
}

static int write_attribute(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node, const struct sl_attr *attr)
{
        const struct sl_canonical_words *words = find_words(from->op, attr->id);
        int input = sl_export_parameter_input(from, attr->id);
        size_t i = find_renamed(from->op, attr->id);

        if (attr->id == SL_ATTR_STREAM || attr->id == SL_ATTR_RANDOM_SEED)
                return 0; /* import and the model's options give them */
        if (i < N_RENAMED)
                return renamed[i].name ? write_as_it_is(e, node, attr, renamed[i].name) : 0;
        if (input >= 0)
                return sl_export_parameter(e, from, attr, (uint32_t)input, node);
        if (words)
                return write_word(e, from, node, attr, words);
        if (!sl_canonical_copies(from->op, sl_attr_name(attr->id)))
                return sl_export_refuse(e, from, sl_attr_name(attr->id));
        return write_as_it_is(e, node, attr, sl_attr_name(attr->id));
}

int sl_export_attributes(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        int r = 0;

        for (uint32_t i = 0; i < from->attrs.count && r == 0; i++)
                r = write_attribute(e, from, node, &from->attrs.items[i]);
        return r;
}
