/* SPDX-License-Identifier: Apache-2.0 */
#include "attr.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const names[SL_ATTR_COUNT] = {
#define X(id, name) [SL_ATTR_##id] = name,
        SL_ATTRS(X)
#undef X
};

const char *sl_attr_name(uint32_t id)
{
        return id < SL_ATTR_COUNT ? names[id] : "unknown";
}

const struct sl_attr *sl_attrs_find(const struct sl_attrs *attrs, uint32_t id)
{
        for (uint32_t i = 0; i < attrs->count; i++)
                if (attrs->items[i].id == id)
                        return &attrs->items[i];
        return NULL;
}

int64_t sl_attrs_int(const struct sl_attrs *attrs, uint32_t id, int64_t fallback)
{
        const struct sl_attr *attr = sl_attrs_find(attrs, id);

        return attr && attr->type == SL_ATTR_TYPE_INT ? attr->i : fallback;
}

double sl_attrs_float(const struct sl_attrs *attrs, uint32_t id, double fallback)
{
        const struct sl_attr *attr = sl_attrs_find(attrs, id);

        return attr && attr->type == SL_ATTR_TYPE_FLOAT ? attr->f : fallback;
}

int64_t sl_attrs_ints(const struct sl_attrs *attrs, uint32_t id, uint32_t index, int64_t fallback)
{
        const struct sl_attr *attr = sl_attrs_find(attrs, id);

        return attr && attr->type == SL_ATTR_TYPE_INTS && index < attr->count ? attr->ints[index] : fallback;
}

double sl_attrs_floats(const struct sl_attrs *attrs, uint32_t id, uint32_t index, double fallback)
{
        const struct sl_attr *attr = sl_attrs_find(attrs, id);

        return attr && attr->type == SL_ATTR_TYPE_FLOATS && index < attr->count ? attr->floats[index] : fallback;
}

/* The attribute of that id, emptied; a new one when there is none; NULL when there is no room. */
static struct sl_attr *claim(struct sl_attrs *attrs, uint32_t id, enum sl_attr_type type)
{
        struct sl_attr *attr = (struct sl_attr *)sl_attrs_find(attrs, id);

        if (!attr && attrs->count == SL_NODE_ATTRS_MAX)
                return NULL;
        if (!attr)
                attr = &attrs->items[attrs->count++];
        /* Attributes go into plan files as they are: no stale bytes. */
        memset(attr, 0, sizeof(*attr));
        attr->id = (uint16_t)id;
        attr->type = (uint16_t)type;
        return attr;
}

int sl_attrs_set_int(struct sl_attrs *attrs, uint32_t id, int64_t value)
{
        struct sl_attr *attr = claim(attrs, id, SL_ATTR_TYPE_INT);

        if (!attr)
                return -E2BIG;
        attr->i = value;
        return 0;
}

int sl_attrs_set_float(struct sl_attrs *attrs, uint32_t id, double value)
{
        struct sl_attr *attr = claim(attrs, id, SL_ATTR_TYPE_FLOAT);

        if (!attr)
                return -E2BIG;
        attr->f = value;
        return 0;
}

int sl_attrs_set_ints(struct sl_attrs *attrs, uint32_t id, const int64_t *values, uint32_t count)
{
        struct sl_attr *attr = count <= SL_ATTR_INTS_MAX ? claim(attrs, id, SL_ATTR_TYPE_INTS) : NULL;

        if (!attr)
                return -E2BIG;
        attr->count = count;
        for (uint32_t i = 0; i < count; i++)
                attr->ints[i] = values[i];
        return 0;
}

int sl_attrs_set_floats(struct sl_attrs *attrs, uint32_t id, const double *values, uint32_t count)
{
        struct sl_attr *attr = count <= SL_ATTR_INTS_MAX ? claim(attrs, id, SL_ATTR_TYPE_FLOATS) : NULL;

        if (!attr)
                return -E2BIG;
        attr->count = count;
        for (uint32_t i = 0; i < count; i++)
                attr->floats[i] = values[i];
        return 0;
}

void sl_attrs_remove(struct sl_attrs *attrs, uint32_t id)
{
        struct sl_attr *attr = (struct sl_attr *)sl_attrs_find(attrs, id);

        if (!attr)
                return;
        struct sl_attr *last = &attrs->items[--attrs->count];
        *attr = *last;
        memset(last, 0, sizeof(*last));
}
