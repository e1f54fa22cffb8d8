/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long something takes on a stream of a GPU, by the device's own clock: as a graph, as it will be launched, several times
 * behind each other where it is short. One thread, with the device's context; nothing else is on the stream.
 */
#pragma once

#include "cuda/driver/device.h"

#include <stdint.h>

struct sl_cuda_stopwatch {
        const struct sl_cuda_driver *driver;
        CUstream stream;
        CUevent begin, end;
        void (*breathe)(void *context); /* while it waits; NULL: nothing */
        void *context;
};

/* @breathe: launches nothing on @stream. Return: 0, it is to be deinitialised; what sl_cuda_errno() says. */
int sl_cuda_stopwatch_init(struct sl_cuda_stopwatch *stopwatch, const struct sl_cuda_driver *driver, CUstream stream,
        void (*breathe)(void *context), void *context);
void sl_cuda_stopwatch_deinit(struct sl_cuda_stopwatch *stopwatch);

/*
 * The median of several runs of what @launch queues on the stream. @bound_ns: what takes twice as long is not run again; 0: there
 * is none. Return: 0, at least 1 ns; -EIO the device is lost; another -errno: it cannot be launched, or not as a graph.
 */
int sl_cuda_stopwatch_time(
        struct sl_cuda_stopwatch *stopwatch, CUresult (*launch)(void *context), void *context, uint64_t bound_ns, uint64_t *ret_ns);
