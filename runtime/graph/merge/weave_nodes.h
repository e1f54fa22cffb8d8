/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one common node becomes one node of the merged graph: a function for each family of operators and form. rows.h says which
 * operator takes which. Private to this folder.
 */
#pragma once

#include <stdint.h>

struct sl_weave;

/*
 * Adds what computes the common node @node (a number in the first graph), whose inputs and outputs are in @form, and sets its
 * outputs. Return: 0; -ENOTSUP not in this form; -ENOMEM, -E2BIG.
 */
typedef int sl_weave_node(struct sl_weave *weave, uint32_t node, uint32_t form);

sl_weave_node sl_weave_elements;   /* elementwise, in any form */
sl_weave_node sl_weave_axes;       /* what computes along axes that its attributes name, in any form */
sl_weave_node sl_weave_indexed;    /* Gather by the same indices in all lanes */
sl_weave_node sl_weave_view;       /* Reshape, Flatten */
sl_weave_node sl_weave_expand;     /* Expand, Tile, in LANE */
sl_weave_node sl_weave_folded;     /* what computes each sample apart: lanes are samples */
sl_weave_node sl_weave_pooled;     /* what computes each channel apart and has no weights: lanes are channels */
sl_weave_node sl_weave_grouped;    /* Conv, ConvTranspose: groups times K; INNER: starling.LanedConv */
sl_weave_node sl_weave_channelled; /* BatchNormalization, InstanceNormalization, GroupNormalization: more channels */
sl_weave_node sl_weave_layer_norm; /* a laned layer normalization */
sl_weave_node sl_weave_group_norm; /* the same as a group normalization of K groups */
sl_weave_node sl_weave_product;    /* MatMul: a product of rank 3 and more */
sl_weave_node sl_weave_gemm;       /* Gemm: a product of rank 3 */
