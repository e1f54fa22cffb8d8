/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <criterion/criterion.h>
#include <errno.h>

struct part {
        uint64_t start, end;
};

static void expect_apart(const struct part *parts, int n, uint64_t limit)
{
        for (int i = 0; i < n; i++) {
                cr_assert_lt(parts[i].start, parts[i].end);
                cr_assert_leq(parts[i].end, i + 1 < n ? parts[i + 1].start : limit);
        }
}

static struct part span(const void *base, const void *start, uint64_t bytes)
{
        uint64_t offset = (uint64_t)((const char *)start - (const char *)base);

        return (struct part){offset, offset + bytes};
}

static void check_shape(const struct sl_channel_shape *shape)
{
        struct sl_channel_offsets offsets;
        int r = sl_channel_offsets(shape, &offsets);
        char *request = (char *)(uintptr_t)0x10000, *response = (char *)(uintptr_t)0x40000000;
        uint64_t descriptors = (uint64_t)shape->depth * shape->tensors * SL_LINE_BYTES;
        uint64_t wide = (uint64_t)SL_WIDE_SLOTS * SL_TENSORS_MAX * SL_LINE_BYTES;
        uint64_t request_end = sizeof(struct sl_channel_header), response_end = request_end;

        cr_assert(r == 0 || r == -E2BIG);
        if (r < 0)
                return;
        cr_assert_leq(offsets.wide_descriptors, SL_REQUEST_BYTES_MAX);
        cr_assert_geq(offsets.wide_stride, wide);
        cr_assert_eq(offsets.request_bytes % SL_PAGE_BYTES, 0);
        cr_assert_eq(offsets.response_bytes % SL_PAGE_BYTES, 0);
        for (uint32_t queue = 0; queue < shape->n_queues; queue++) {
                struct sl_queue_map map;

                sl_queue_map(&map, shape, &offsets, queue, request, response);
                struct part in_request[] = {{0, request_end}, span(request, map.request, sizeof(*map.request)),
                        span(request, map.cancels, shape->depth * sizeof(uint32_t)),
                        span(request, map.entries, shape->depth * sizeof(struct sl_entry)),
                        span(request, map.descriptors, descriptors), span(request, map.wide_descriptors, wide)};
                struct part in_response[] = {{0, response_end},
                        span(response, map.response,
                                offsetof(struct sl_queue_response, completions) + shape->depth * sizeof(struct sl_completion)),
                        span(response, map.outputs, descriptors), span(response, map.wide_outputs, wide)};

                expect_apart(in_request, 6, offsets.request_bytes);
                expect_apart(in_response, 4, offsets.response_bytes);
                cr_assert_eq((char *)map.wide_descriptors, request + offsets.wide_descriptors + queue * offsets.wide_stride);
                cr_assert_eq((char *)map.wide_outputs, response + offsets.wide_outputs + queue * offsets.wide_stride);
                cr_assert_eq((uintptr_t)map.request % 128, 0);
                cr_assert_eq((uintptr_t)map.entries % 128, 0);
                cr_assert_eq((uintptr_t)map.descriptors % 64, 0);
                cr_assert_eq((uintptr_t)map.response % 128, 0);
                cr_assert_eq((uintptr_t)map.outputs % 64, 0);
                request_end = in_request[4].end;
                response_end = in_response[2].end;
        }
}

Test(layout, parts_never_overlap_whatever_the_shape)
{
        struct sl_channel_shape shape;

        for (shape.n_queues = 1; shape.n_queues <= SL_QUEUES_MAX; shape.n_queues++)
                for (shape.depth = SL_QUEUE_DEPTH_MIN; shape.depth <= SL_QUEUE_DEPTH_MAX; shape.depth *= 2)
                        for (shape.tensors = 1; shape.tensors <= SL_TENSORS_MAX; shape.tensors++)
                                check_shape(&shape);
}

Test(layout, shapes_out_of_range_are_refused)
{
        const struct sl_channel_shape bad[] = {
                {0, 64, 2},
                {SL_QUEUES_MAX + 1, 64, 2},
                {1, 0, 2},
                {1, 1, 2},
                {1, 63, 2},
                {1, SL_QUEUE_DEPTH_MAX * 2, 2},
                {1, 64, 0},
                {1, 64, SL_TENSORS_MAX + 1},
                {UINT32_MAX, UINT32_MAX, UINT32_MAX},
        };
        struct sl_channel_offsets offsets = {.request_bytes = 7};

        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                cr_expect_eq(sl_channel_offsets(&bad[i], &offsets), -EINVAL);
        cr_expect_eq(offsets.request_bytes, 7, "written on success only");
}

Test(layout, a_request_memfd_above_its_limit_is_refused)
{
        const struct sl_channel_shape big = {SL_QUEUES_MAX, SL_QUEUE_DEPTH_MAX, SL_TENSORS_MAX};
        struct sl_channel_offsets offsets;

        cr_assert_eq(sl_channel_offsets(&big, &offsets), -E2BIG);
}

Test(layout, what_one_side_writes_never_shares_a_line_with_what_the_other_writes)
{
        struct sl_queue_response *response = NULL;
        struct sl_queue_request *request = NULL;

        cr_assert_geq((char *)&response->tail - (char *)&response->consumed, 128);
        cr_assert_geq((char *)&request->sleep - (char *)&request->head, 128);
        cr_assert_geq((char *)&request->cancellations - (char *)&request->sleep, 128);
        cr_assert_eq(sizeof(struct sl_dispatcher_line), 128);
}

Test(layout, the_catalogue_keeps_each_model_on_lines_of_its_own)
{
        cr_assert_eq(sizeof(struct sl_catalogue_model) % 128, 0);
        cr_assert_eq(offsetof(struct sl_catalogue, models) % 128, 0);
        cr_assert_eq(offsetof(struct sl_catalogue, dispatchers) % 128, 0);
        cr_assert_eq(offsetof(struct sl_catalogue, changes) % 128, 0);
}
