/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for why a request that was accepted fails. Several workers may fail at parts of one request at the same moment: the first
 * one writes.
 *
 *   (F1) worker:     takes `told` from 0 to 1, and alone writes the text; then its message goes into its outbox (release).
 *   (F2) dispatcher: has had the messages of all parts that were given out (acquire), so also that one, before it reads.    pairs
 * with F1 (F3) dispatcher: clears it with the completion, before anything of the tag's next request is given out.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SL_FAULT_BYTES 188

struct sl_fault {
        _Atomic uint32_t told;
        char text[SL_FAULT_BYTES];
};

/* Any thread that has a part of the request. Later tellers are not heard. */
void sl_fault_tell(struct sl_fault *fault, const char *text);

/* Dispatcher, while nothing of the request is given out. NULL: nobody has told anything. */
const char *sl_fault_text(const struct sl_fault *fault);
void sl_fault_clear(struct sl_fault *fault);
