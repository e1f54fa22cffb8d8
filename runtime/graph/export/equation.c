/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of an Einsum as an equation: letters, and an ellipsis for the dimensions that have none. */
#include "export/exporter.h"
#include "shape/einsum.h"

/* Each part has a comma or an arrow, and an ellipsis besides its letters. */
#define TERM_BYTES (SL_RANK_MAX + 5)
#define TEXT_BYTES (SL_ATTR_INTS_MAX * TERM_BYTES)

static size_t write_term(char *text, uint64_t labels)
{
        bool ellipsis = false;
        size_t n = 0;

        for (; labels; labels >>= 8) {
                char label = (char)(labels & 0xff);

                if (label > SL_RANK_MAX) {
                        text[n++] = label;
                        continue;
                }
                for (int i = 0; i < 3 && !ellipsis; i++)
                        text[n++] = '.';
                ellipsis = true;
        }
        return n;
}

int sl_export_equation(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        const struct sl_attr *parts = sl_attrs_find(&from->attrs, SL_ATTR_EQUATION);
        char text[TEXT_BYTES];
        size_t n = 0;

        for (uint32_t i = 0; parts && i < parts->count; i++) {
                bool output = i + 1 == parts->count;

                if (output)
                        text[n++] = '-';
                if (i)
                        text[n++] = output ? '>' : ',';
                n += write_term(text + n, (uint64_t)parts->ints[i]);
        }
        return sl_export_string(e, node, "equation", text, n);
}
