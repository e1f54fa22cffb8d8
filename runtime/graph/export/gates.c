/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a recurrent layer by name, with parameters for those that have any, one behind the other. */
#include "base/error.h"
#include "export/exporter.h"
#include "import/canonical.h"

#include <string.h>

static int write_names(struct sl_exporter *e, Onnx__NodeProto *node, const struct sl_attr *kinds)
{
        Onnx__AttributeProto *attribute =
                sl_export_attribute(e, node, "activations", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
        uint32_t n_parameters;

        if (!attribute)
                return -ENOMEM;
        attribute->strings = sl_export_alloc(e, kinds->count * sizeof(*attribute->strings));
        if (!attribute->strings)
                return -ENOMEM;
        for (uint32_t i = 0; i < kinds->count; i++) {
                const char *name = sl_canonical_gate(kinds->ints[i], &n_parameters);

                attribute->strings[i] = (ProtobufCBinaryData){.len = strlen(name), .data = (uint8_t *)name};
        }
        attribute->n_strings = kinds->count;
        return 0;
}

/* Parameter @which of the functions that have it. */
static int write_parameters(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node, const struct sl_attr *kinds,
        uint32_t which, uint32_t id)
{
        float values[SL_ATTR_INTS_MAX];
        uint32_t n = 0, n_parameters;

        for (uint32_t i = 0; i < kinds->count; i++) {
                sl_canonical_gate(kinds->ints[i], &n_parameters);
                if (which < n_parameters)
                        values[n++] = (float)sl_attrs_floats(&from->attrs, id, i, 0);
        }
        return n ? sl_export_floats(e, node, sl_attr_name(id), values, n) : 0;
}

int sl_export_gates(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        const struct sl_attr *kinds = sl_attrs_find(&from->attrs, SL_ATTR_ACTIVATIONS);
        int r;

        if (!kinds)
                return 0;
        r = write_names(e, node, kinds);
        r = r < 0 ? r : write_parameters(e, from, node, kinds, 0, SL_ATTR_ACTIVATION_ALPHA);
        return r < 0 ? r : write_parameters(e, from, node, kinds, 1, SL_ATTR_ACTIVATION_BETA);
}
