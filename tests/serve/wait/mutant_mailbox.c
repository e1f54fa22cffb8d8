/* SPDX-License-Identifier: Apache-2.0 */
/* The mailbox with its stores weakened: ThreadSanitizer must report what the order is there for. Tests only. */
#include "mailbox.h"

#define memory_order_seq_cst memory_order_relaxed
#define memory_order_release memory_order_relaxed
#include "../../../runtime/serve/wait/mailbox.c"
