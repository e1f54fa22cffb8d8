/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of a node of the file: found by name, checked for their type. */
#include "base/utf8.h"
#include "import/importer.h"

#include <stdio.h>
#include <string.h>

#define STRING_BYTES 64 /* of a value that is shown */

const Onnx__AttributeProto *sl_onnx_attr(const struct sl_onnx_node *node, const char *name)
{
        for (size_t i = 0; i < node->proto->n_attribute; i++)
                if (node->proto->attribute[i]->name && !strcmp(node->proto->attribute[i]->name, name))
                        return node->proto->attribute[i];
        return NULL;
}

static int wrong_type(struct sl_importer *im, const struct sl_onnx_node *node, const char *name)
{
        return sl_error_set(
                im->error, EBADMSG, "node \"%s\" (%s): attribute %s has a wrong type", node->name, node->proto->op_type, name);
}

int sl_onnx_int(struct sl_importer *im, const struct sl_onnx_node *node, const char *name, int64_t *value)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, name);

        if (attr && (attr->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT || !attr->has_i))
                return wrong_type(im, node, name);
        if (attr)
                *value = attr->i;
        return 0;
}

int sl_onnx_float(struct sl_importer *im, const struct sl_onnx_node *node, const char *name, double *value)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, name);

        if (attr && (attr->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT || !attr->has_f))
                return wrong_type(im, node, name);
        if (attr)
                *value = (double)attr->f;
        return 0;
}

int sl_onnx_is(const struct sl_onnx_node *node, const char *name, const char *text, bool *ret_is)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, name);

        if (!attr || !attr->has_s)
                return -ENOENT;
        *ret_is = attr->s.len == strlen(text) && !memcmp(attr->s.data, text, attr->s.len);
        return 0;
}

static int copy_ints(struct sl_importer *im, const struct sl_onnx_node *node, const Onnx__AttributeProto *attr, uint32_t id,
        struct sl_attrs *attrs)
{
        if (attr->n_ints > SL_ATTR_INTS_MAX)
                return sl_error_set(im->error, E2BIG, "node \"%s\" (%s): attribute %s has %zu elements, at most %d", node->name,
                        node->proto->op_type, attr->name, attr->n_ints, SL_ATTR_INTS_MAX);
        return sl_attrs_set_ints(attrs, id, attr->ints, (uint32_t)attr->n_ints);
}

static int copy_floats(struct sl_importer *im, const struct sl_onnx_node *node, const Onnx__AttributeProto *attr, uint32_t id,
        struct sl_attrs *attrs)
{
        double floats[SL_ATTR_INTS_MAX];

        if (attr->n_floats > SL_ATTR_INTS_MAX)
                return sl_error_set(im->error, E2BIG, "node \"%s\" (%s): attribute %s has %zu elements, at most %d", node->name,
                        node->proto->op_type, attr->name, attr->n_floats, SL_ATTR_INTS_MAX);
        for (size_t i = 0; i < attr->n_floats; i++)
                floats[i] = (double)attr->floats[i];
        return sl_attrs_set_floats(attrs, id, floats, (uint32_t)attr->n_floats);
}

int sl_onnx_copy_attr(
        struct sl_importer *im, const struct sl_onnx_node *node, const char *name, uint32_t id, struct sl_attrs *attrs)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, name);

        if (!attr)
                return 0;
        switch (attr->type) {
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
                return sl_attrs_set_int(attrs, id, attr->i);
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
                return sl_attrs_set_float(attrs, id, (double)attr->f);
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
                return copy_ints(im, node, attr, id, attrs);
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
                return copy_floats(im, node, attr, id, attrs);
        default:
                return wrong_type(im, node, name);
        }
}

int sl_onnx_word(struct sl_importer *im, const struct sl_onnx_node *node, const char *name, const char *words, uint32_t id,
        struct sl_attrs *attrs)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, name);
        char what[320], value[STRING_BYTES];
        int64_t place = 0;

        if (!attr)
                return 0;
        if (attr->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING || !attr->has_s)
                return wrong_type(im, node, name);
        for (const char *word = words; *word; place++) {
                size_t length = strcspn(word, " ");

                if (length == attr->s.len && !memcmp(word, attr->s.data, length))
                        return sl_attrs_set_int(attrs, id, place);
                word += length + strspn(word + length, " ");
        }
        snprintf(value, sizeof(value), "%.*s", (int)(attr->s.len < sizeof(value) ? attr->s.len : sizeof(value)),
                (const char *)attr->s.data);
        snprintf(what, sizeof(what), "attribute %s is \"%s%s\", none of %s", name, sl_utf8_clean(value, value, sizeof(value)),
                attr->s.len < sizeof(value) ? "" : "...", words);
        return sl_import_refuse(im, node, what);
}
