/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake driver's library counts, in the file that FAKE_CUDA_COUNTS names: for tests of whole programs. Plain words. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct fake_counts {
        _Atomic uint64_t combinations; /* launches of kernels that combine members */
        _Atomic uint64_t returns;      /* copies from the device */
};
