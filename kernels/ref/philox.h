/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Philox4x32-10: 128 random bits for each counter and key, the same on every machine and in any order. Pure; any thread.
 *
 * Sources: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011, section 3.3.
 */
#pragma once

#include <stdint.h>

#define SL_PHILOX_ROUNDS 10

struct sl_philox {
        uint32_t words[4];
};

/* The counter is @low and, in its upper half, @high. */
static inline struct sl_philox sl_philox_of(uint64_t key, uint64_t low, uint64_t high)
{
        struct sl_philox c = {{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

        for (uint32_t i = 0; i < SL_PHILOX_ROUNDS; i++) {
                uint64_t a = 0xd2511f53ull * c.words[0], b = 0xcd9e8d57ull * c.words[2];

                c = (struct sl_philox){
                        {(uint32_t)(b >> 32) ^ c.words[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c.words[3] ^ k1, (uint32_t)a}};
                k0 += 0x9e3779b9u;
                k1 += 0xbb67ae85u;
        }
        return c;
}
