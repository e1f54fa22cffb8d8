/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for why something fails: of a piece, in its job, which who computes writes and the dispatcher reads after the answer; of a
 * request, the dispatcher's own, which keeps the first that it hears.
 */
#pragma once

#define SL_FAULT_BYTES      188
#define SL_FAULT_NAME_BYTES 64 /* of a name in it that is shortened */

/* Zeros: nothing has been told. */
struct sl_fault {
        char text[SL_FAULT_BYTES];
};

/* Cut where it is too long. Not heard where something has been told before. */
void sl_fault_tell(struct sl_fault *fault, const char *text);

/* NULL: nobody has told anything. */
const char *sl_fault_text(const struct sl_fault *fault);
void sl_fault_clear(struct sl_fault *fault);
