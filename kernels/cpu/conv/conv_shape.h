/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels of convolutions over images read of their node. Pure; any thread.
 */
#pragma once

#include "cpu/gemm/epilogue.h"
#include "shape/window.h"

struct sl_conv_shape {
        uint32_t dtype; /* of all tensors */
        struct sl_window window;
        int64_t groups, channels, filters; /* the latter two of a group */
        int64_t batch, height, width;      /* of the input */
        int64_t out_height, out_width;
        bool has_bias;
        uint32_t residual; /* node input; 0: none */
        struct sl_cpu_epilogue epilogue;
};

/*
 * False: not float32 over an image, not CHANNELS_LAST at the end, something is empty, or there is no own code for the epilogue. The
 * input's layout is the caller's to check.
 */
bool sl_conv_shape_read(const struct sl_node_desc *node, struct sl_conv_shape *ret_shape);

/* The same of a convolution of float32 or of bfloat16. */
bool sl_conv_shape_read_real(const struct sl_node_desc *node, struct sl_conv_shape *ret_shape);
