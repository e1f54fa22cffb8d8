/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boundary: a request is checked against the model that it names before a byte of it reaches the wire. The runtime checks
 * again; here it is for the text, and for never paying a round trip for a mistake.
 */
#pragma once

#include "model.h"
#include "queue.h"
#include "region.h"

/* Inputs that the request has on the wire: all, or, where the model allows it, the required ones if it gives no other. */
uint32_t sl_request_inputs(const struct starling_request *request);

/*
 * Checks @request, which is no no-op, and fills @descriptors, the tag's place on the wire, of @n_inputs inputs
 * (sl_request_inputs()) and the outputs. Return: 0 and the number of samples; SL_HANDLE_QUERY and that: a variant is to be chosen;
 * -EINVAL, -E2BIG, -ESTALE, -ENOENT with the queue pair's text.
 */
int sl_check_request(struct starling_queue *queue, const struct starling_request *request, uint32_t n_inputs,
        struct sl_descriptor *descriptors, uint32_t *ret_samples);
