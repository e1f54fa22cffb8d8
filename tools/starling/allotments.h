/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocation as libstarling takes it. One owner; the names are the allocation's.
 */
#pragma once

#include "starling.h"

struct sl_allocation;

/* One for each of its workers, in its order; the caller frees them. Return: NULL without memory. */
struct starling_allotment *allotments_of(const struct sl_allocation *allocation);
