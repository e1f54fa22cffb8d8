/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors that a run reads and writes: for each port the samples of a batch, one after another, in memory of this process. What
 * is not an output keeps its value from run to run. One owner thread; lanes read and write disjoint samples.
 */
#pragma once

#include "plan.h"

struct json_t;

struct sl_ports_open {
        struct sl_open_output outputs[SL_PLAN_PORTS_MAX];
};

struct sl_ports {
        const struct sl_plan_info *info; /* outlives the ports */
        uint32_t samples;
        void *inputs[SL_PLAN_PORTS_MAX], *outputs[SL_PLAN_PORTS_MAX];
        struct sl_ports_open *open; /* of each sample: what the last run made of outputs whose shapes are data-dependent */
};

/* Zeroed and touched. Return: 0; -ENOMEM; -ERANGE a port of more bytes than can be counted. */
int sl_ports_init(struct sl_ports *ports, const struct sl_plan_info *info, uint32_t samples, struct sl_error *error);
void sl_ports_deinit(struct sl_ports *ports);

/* Bytes of one sample, or of the whole tensor when it has no batch; the room for an output whose shape is data-dependent. */
uint64_t sl_port_bytes(const struct sl_port *port);

/* Fills the input @name with the bytes of a file. Return: 0; -ENOENT no such input; -EINVAL a file of another size; -errno. */
int sl_ports_read(struct sl_ports *ports, const char *name, const char *path, struct sl_error *error);

/*
 * Writes each output to @folder/INDEX.SAMPLE.raw: all samples at once, or each sample of a model whose samples cannot be batched.
 * Return: 0 and an array of {"name", "sample", "dtype", "shape", "file"}, the caller's reference; -errno.
 */
int sl_ports_write(const struct sl_ports *ports, const char *folder, struct json_t **ret_list, struct sl_error *error);
