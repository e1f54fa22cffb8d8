/* SPDX-License-Identifier: Apache-2.0 */
/* The accumulator whose last sender does not acquire what the others staged: ThreadSanitizer must report it. Tests only. */
#include "accumulator.h"
#include "assembly.h"
#include "job.h"

#define memory_order_seq_cst memory_order_relaxed
#include "../../../runtime/serve/execute/accumulator.c"
