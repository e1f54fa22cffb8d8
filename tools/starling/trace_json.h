/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace in the JSON of Chrome's trace viewer, which Perfetto reads as well: processes "workers", "queues" and "clients", whose
 * threads are the lanes. Times are microseconds from the first. One thread.
 *
 * Sources: Trace Event Format (Google, 2016), complete events and metadata events.
 */
#pragma once

#include "lanes.h"

#include <stdio.h>

void trace_print_json(const struct lanes *lanes, FILE *out);
