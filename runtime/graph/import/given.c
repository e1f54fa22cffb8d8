/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node was given, for who is told why it is refused: types and shapes of its inputs, values of small parameters, and its
 * attributes. As much as fits; names and values are those of the file, so that they can be looked up there.
 */
#include "base/utf8.h"
#include "import/importer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX    8 /* of a list */
#define STRING_BYTES 40

struct text {
        char *to;
        size_t bytes, used;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        if (text->used < text->bytes)
                text->used += (size_t)vsnprintf(text->to + text->used, text->bytes - text->used, format, args);
        va_end(args);
}

static void put_ints(struct text *text, const int64_t *ints, size_t n)
{
        put(text, "[");
        for (size_t i = 0; i < n && i < SHOWN_MAX; i++)
                put(text, "%s%" PRId64, i ? "," : "", ints[i]);
        put(text, n > SHOWN_MAX ? ",...]" : "]");
}

/* Looked up without a capture: nothing is changed. NULL: it is absent, or no tensor that is known. */
static const struct sl_value *find_value(const struct sl_importer *im, const char *name)
{
        for (; im; im = im->outer) {
                const struct sl_symbol *symbol = sl_symbols_find(&im->symbols, name);

                if (symbol)
                        return symbol->value == SL_VALUE_NONE ? NULL : &im->graph->values[symbol->value];
        }
        return NULL;
}

static void put_input(struct text *text, const struct sl_importer *im, const char *name)
{
        const struct sl_value *value = *name ? find_value(im, name) : NULL;
        char shape[SL_SHAPE_TEXT_BYTES];
        uint64_t n;

        if (!value) {
                put(text, *name ? "?" : "none");
                return;
        }
        put(text, "%s %s", sl_dtype_name(value->tensor.dtype), sl_shape_print(&value->tensor.shape, shape));
        n = sl_shape_elements(&value->tensor.shape);
        if (value->kind != SL_VALUE_CONSTANT || value->tensor.dtype != SL_DTYPE_I64 || !value->data || !n || n > SHOWN_MAX)
                return;
        int64_t numbers[SHOWN_MAX]; /* which may lie anywhere in the file */

        memcpy(numbers, value->data, n * sizeof(*numbers));
        put(text, " of ");
        put_ints(text, numbers, n);
}

static void put_attribute(struct text *text, const Onnx__AttributeProto *attr)
{
        char shown[STRING_BYTES];

        put(text, "%s = ", attr->name);
        switch (attr->type) {
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
                put(text, "%" PRId64, (int64_t)attr->i);
                return;
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
                put(text, "%g", (double)attr->f);
                return;
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
                put_ints(text, attr->ints, attr->n_ints);
                return;
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
                snprintf(shown, sizeof(shown), "%.*s", (int)(attr->s.len < sizeof(shown) ? attr->s.len : sizeof(shown)),
                        attr->s.data ? (const char *)attr->s.data : "");
                put(text, "\"%s%s\"", sl_utf8_clean(shown, shown, sizeof(shown)), attr->s.len >= sizeof(shown) ? "..." : "");
                return;
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
                put(text, "%zu numbers", attr->n_floats);
                return;
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
                put(text, "%zu strings", attr->n_strings);
                return;
        default:
                put(text, "...");
        }
}

const char *sl_import_given(const struct sl_importer *im, const struct sl_onnx_node *node, char *ret_text, size_t bytes)
{
        struct text text = {.to = ret_text, .bytes = bytes};
        const Onnx__NodeProto *proto = node->proto;

        put(&text, " (%zu input%s", proto->n_input, proto->n_input == 1 ? "" : "s");
        for (size_t i = 0; i < proto->n_input && i < SHOWN_MAX; i++) {
                put(&text, i ? ", " : ": ");
                put_input(&text, im, proto->input[i]);
        }
        for (size_t i = 0; i < proto->n_attribute && i < SHOWN_MAX; i++)
                if (proto->attribute[i]->name) {
                        put(&text, i ? ", " : "; ");
                        put_attribute(&text, proto->attribute[i]);
                }
        put(&text, ")");
        if (text.used >= bytes)
                memcpy(ret_text + sl_utf8_head(ret_text, bytes - sizeof("...)")), "...)", sizeof("...)"));
        return ret_text;
}
