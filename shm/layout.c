/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <errno.h>

static int check_shape(const struct sl_channel_shape *shape)
{
        if (shape->n_queues < 1 || shape->n_queues > SL_QUEUES_MAX || shape->tensors < 1 || shape->tensors > SL_TENSORS_MAX)
                return -EINVAL;
        if (shape->depth < SL_QUEUE_DEPTH_MIN || shape->depth > SL_QUEUE_DEPTH_MAX || !sl_is_power_of_two(shape->depth))
                return -EINVAL;
        return 0;
}

int sl_channel_offsets(const struct sl_channel_shape *shape, struct sl_channel_offsets *ret_offsets)
{
        int r = check_shape(shape);

        if (r < 0)
                return r;

        uint64_t cancels = sizeof(struct sl_queue_request);
        uint64_t entries = sl_align_up(cancels + shape->depth * sizeof(uint32_t), SL_LINE_PAIR_BYTES);
        uint64_t descriptors = entries + shape->depth * sizeof(struct sl_entry);
        uint64_t lines = (uint64_t)shape->depth * shape->tensors * SL_LINE_BYTES;
        uint64_t request_stride = sl_align_up(descriptors + lines, SL_LINE_PAIR_BYTES);
        uint64_t outputs = sizeof(struct sl_queue_response) + shape->depth * sizeof(struct sl_completion);
        uint64_t response_stride = sl_align_up(outputs + lines, SL_LINE_PAIR_BYTES);
        uint64_t header = sizeof(struct sl_channel_header);
        uint32_t wide = SL_WIDE_SLOTS * SL_TENSORS_MAX * SL_LINE_BYTES;
        uint64_t request_bytes = sl_align_up(header + request_stride * shape->n_queues, SL_PAGE_BYTES);
        uint64_t response_bytes = sl_align_up(header + response_stride * shape->n_queues, SL_PAGE_BYTES);

        if (request_bytes > SL_REQUEST_BYTES_MAX)
                return -E2BIG;
        *ret_offsets = (struct sl_channel_offsets){
                .cancels = (uint32_t)cancels,
                .entries = (uint32_t)entries,
                .descriptors = (uint32_t)descriptors,
                .request_stride = (uint32_t)request_stride,
                .outputs = (uint32_t)outputs,
                .response_stride = (uint32_t)response_stride,
                .request_bytes = (uint32_t)request_bytes,
                .response_bytes = (uint32_t)response_bytes,
                .wide_descriptors = (uint32_t)request_bytes,
                .wide_outputs = (uint32_t)response_bytes,
                .wide_stride = wide,
        };
        ret_offsets->request_bytes += shape->n_queues * wide;
        ret_offsets->response_bytes += shape->n_queues * wide;
        return 0;
}

void sl_queue_map(struct sl_queue_map *ret_map, const struct sl_channel_shape *shape, const struct sl_channel_offsets *offsets,
        uint32_t queue, void *request, void *response)
{
        char *req = (char *)request + sizeof(struct sl_channel_header) + (size_t)queue * offsets->request_stride;
        char *resp = (char *)response + sizeof(struct sl_channel_header) + (size_t)queue * offsets->response_stride;

        *ret_map = (struct sl_queue_map){
                .request = (struct sl_queue_request *)req,
                .cancels = (_Atomic uint32_t *)(req + offsets->cancels),
                .entries = (struct sl_entry *)(req + offsets->entries),
                .descriptors = (struct sl_descriptor *)(req + offsets->descriptors),
                .response = (struct sl_queue_response *)resp,
                .outputs = (struct sl_output *)(resp + offsets->outputs),
                .wide_descriptors = (struct sl_descriptor *)((char *)request + offsets->wide_descriptors +
                                                             (size_t)queue * offsets->wide_stride),
                .wide_outputs =
                        (struct sl_output *)((char *)response + offsets->wide_outputs + (size_t)queue * offsets->wide_stride),
                .depth = shape->depth,
                .mask = shape->depth - 1,
                .tensors = shape->tensors,
        };
}
