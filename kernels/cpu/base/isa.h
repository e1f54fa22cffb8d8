/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the own kernels this processor runs; ONEDNN_MAX_CPU_ISA, by which oneDNN is kept from what a processor has, holds for
 * them too. Whoever calls into a file that is compiled for AVX-512 or AVX2 has asked here
 * first.
 *
 * Files named "tiles" in the build file are compiled twice. Their functions are defined as SL_TILE(name), and declared with
 * SL_TILES(): by that name they are called, whichever this processor runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* AVX-512 F, BW, DQ and VL with FMA, on the processor and saved by the system. */
bool sl_cpu_has_avx512(void);

/* AVX2 with FMA, the same; so has who has the former. */
bool sl_cpu_has_avx2(void);

/* What widens float16, of a processor that has AVX2; all known ones have it. */
bool sl_cpu_has_f16c(void);

/*
 * Bytes of the caches of one core, as the processor says; where it does not, 32 KiB and 512 KiB, which no core with AVX2 is below.
 * Asked of the processor, not of the system's files: the same behind the compiler's door.
 */
int64_t sl_cpu_l1_bytes(void);
int64_t sl_cpu_l2_bytes(void);

/*
 * Are oneDNN's products of bytes exact on this processor? Without VNNI they are not: it adds up two products of bytes in 16
 * bits, which saturate. As it sees the processor, environment included, which the key of a plan file holds too. Any thread.
 */
bool sl_cpu_multiplies_bytes(void);

/* The own products of bytes: AVX-512 as above, with VNNI. Any thread. */
bool sl_cpu_has_vnni(void);

/*
 * The same by tiles of AMX. The system lets a process use them once it has asked, which this does: for all threads, and for
 * children that are forked later. Any thread.
 */
bool sl_cpu_has_amx(void);

/* SL_TILES(what it returns, its name, (its parameters), (their names)) */
#ifdef SL_TILE_ISA
#define SL_TILE_JOIN(name, isa) name##_##isa
#define SL_TILE_OF(name, isa)   SL_TILE_JOIN(name, isa)
#define SL_TILE(name)           SL_TILE_OF(name, SL_TILE_ISA)
#define SL_TILES(type, name, parameters, arguments)                                                                                \
        type SL_TILE(name) parameters;                                                                                             \
        static inline type name parameters                                                                                         \
        {                                                                                                                          \
                return SL_TILE(name) arguments;                                                                                    \
        }
#else
#define SL_TILES(type, name, parameters, arguments)                                                                                \
        type name##_avx512 parameters;                                                                                             \
        type name##_avx2 parameters;                                                                                               \
        static inline type name parameters                                                                                         \
        {                                                                                                                          \
                return sl_cpu_has_avx512() ? name##_avx512 arguments : name##_avx2 arguments;                                      \
        }
#endif
