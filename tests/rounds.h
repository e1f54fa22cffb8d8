/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of random cases, each of which is computed by instrumented code alone: an eighth of them under a sanitizer, see README.md. */
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SL_ROUNDS(n) ((n) / 8)
#else
#define SL_ROUNDS(n) (n)
#endif
