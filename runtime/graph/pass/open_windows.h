/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many places a window has along dimensions whose sizes are not known: as many along two of them where the sizes are equal and
 * the windows reach as far and step as wide. Private to this folder; one owner.
 *
 * A window of k elements has floor((size + padding - k) / stride) + 1 places, or is refused: padding - k and the stride decide.
 */
#pragma once

#include <stdint.h>

struct sl_graph;
struct sl_node;

#define SL_OPEN_WINDOWS_MAX 256 /* what is beyond is equal to nothing */

struct sl_open_windows {
        uint32_t n;
        struct sl_open_window {
                int64_t offset, stride;
                uint32_t size, places; /* classes (open_dims.h) of the dimension, and of its places */
        } items[SL_OPEN_WINDOWS_MAX];
};

/*
 * The class of dimension @i of what @node of @graph, a convolution or a pool, makes: that of its places along the same dimension of
 * input 0, of class @size. @next is that of a window that none before was like; 0: nothing is known.
 */
uint32_t sl_open_windows_class(struct sl_open_windows *windows, const struct sl_graph *graph, const struct sl_node *node,
        uint32_t i, uint32_t size, uint32_t next);
