/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room on a device for the ports of an instance whose caller has his buffers on the host: what a run copies up and down. One owner,
 * one thread, that of the instance.
 */
#pragma once

#include "plan_info.h"
#include "sessions.h"

#include <stdint.h>

struct sl_error;

struct sl_resident_ports {
        struct sl_plan_session *session; /* NULL: nothing is copied */
        const struct sl_plan_info *info;
        void **inputs, **outputs;  /* NULL without a session */
        void *const *host_outputs; /* of the run */
        uint32_t batch;
};

/* For runs up to @batch_max, in zeroed memory. Return: 0; -ENOMEM, -EIO: deinit all the same. */
int sl_resident_ports_init(struct sl_resident_ports *ports, struct sl_plan_session *session, const struct sl_plan_info *info,
        uint32_t batch_max, struct sl_error *error);
void sl_resident_ports_deinit(struct sl_resident_ports *ports);

/* The first and the last thing of a run. Return: 0; -EINPROGRESS; -EIO. */
int sl_resident_ports_upload(struct sl_resident_ports *ports, uint32_t batch, const void *const *inputs, void *const *outputs);
int sl_resident_ports_download(const struct sl_resident_ports *ports);
