/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: is a copied entry a request that this ensemble can serve? Pure arithmetic on private copies, so that a client
 * that changes its memory meanwhile changes nothing, and so that it can be fuzzed. Any thread.
 */
#pragma once

#include "channel.h"
#include "ensemble.h"
#include "refuse.h"

/* It may be left out of a request, and is: its place is SL_NO_REGION. */
static inline bool sl_input_is_left_out(const struct sl_port *port, const struct sl_descriptor *descriptor)
{
        return port->fallback && descriptor->dtype == SL_DTYPE_NONE && !descriptor->bytes;
}

/*
 * @entry and @descriptors (n_inputs + n_outputs of them, at most the channel's `tensors`) are private copies.
 * @ret_tensors: the place of each descriptor. Whole ranges are inside their regions.
 *
 * Return: 0, or
 *   -EINVAL    unknown flags, a count, type, rank, dimension, size or alignment that differs from the ensemble's
 *   -ENOTSUP   a session other than 0: sequences are not served
 *   -EFAULT    a tensor outside its region, or a region that there is not
 *   -EMSGSIZE  an output's capacity is too small
 *   -E2BIG     more samples than samples_max
 *   -ETIME     the deadline has passed
 */
int sl_admit(const struct sl_entry *entry, const struct sl_descriptor *descriptors, const struct sl_region *regions,
        uint32_t n_regions, const struct sl_ensemble *ensemble, uint64_t now_ns, struct sl_refused *ret_refused,
        struct sl_place *ret_tensors);

/*
 * The part of it that can be said before the sizes of an open ensemble are known: nothing is looked up, compiled or loaded for
 * sizes that the request's own memory does not hold. Return: as above, but for -EMSGSIZE; -EINVAL also when an input's bytes are
 * not those of its dimensions.
 */
int sl_admit_open(const struct sl_entry *entry, const struct sl_descriptor *descriptors, const struct sl_region *regions,
        uint32_t n_regions, const struct sl_ensemble *ensemble, uint64_t now_ns, struct sl_refused *ret_refused);
