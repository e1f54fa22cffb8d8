/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/base/isa.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <dnnl.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef ARCH_REQ_XCOMP_PERM
#define ARCH_REQ_XCOMP_PERM 0x1023 /* of Linux 5.16, which older headers lack */
#endif
#define XFEATURE_TILE_DATA 18

enum level { LEVEL_UNKNOWN, LEVEL_NONE, LEVEL_AVX2, LEVEL_AVX512 };

static enum level read_level(void)
{
        dnnl_cpu_isa_t limit = dnnl_get_effective_cpu_isa();

        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || (limit & dnnl_cpu_isa_avx2) != dnnl_cpu_isa_avx2)
                return LEVEL_NONE;
        if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
                !__builtin_cpu_supports("avx512vl") || (limit & dnnl_cpu_isa_avx512_core) != dnnl_cpu_isa_avx512_core)
                return LEVEL_AVX2;
        return LEVEL_AVX512;
}

/* Relaxed: whoever finds it unknown reads the same from the processor. */
static enum level own_level(void)
{
        static _Atomic int known;
        int level = atomic_load_explicit(&known, memory_order_relaxed);

        if (level == LEVEL_UNKNOWN) {
                level = read_level();
                atomic_store_explicit(&known, level, memory_order_relaxed);
        }
        return level;
}

bool sl_cpu_has_avx512(void)
{
        return own_level() == LEVEL_AVX512;
}

bool sl_cpu_has_avx2(void)
{
        return own_level() >= LEVEL_AVX2;
}

bool sl_cpu_has_f16c(void)
{
        unsigned a, b, c, d;

        return sl_cpu_has_avx2() && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* Relaxed: as above. */
static int64_t cache_bytes(_Atomic int64_t *known, int name, int64_t guess)
{
        int64_t bytes = atomic_load_explicit(known, memory_order_relaxed);

        if (!bytes) {
                bytes = sysconf(name);
                bytes = bytes > 0 ? bytes : guess;
                atomic_store_explicit(known, bytes, memory_order_relaxed);
        }
        return bytes;
}

int64_t sl_cpu_l1_bytes(void)
{
        static _Atomic int64_t known;

        return cache_bytes(&known, _SC_LEVEL1_DCACHE_SIZE, 32 << 10);
}

int64_t sl_cpu_l2_bytes(void)
{
        static _Atomic int64_t known;

        return cache_bytes(&known, _SC_LEVEL2_CACHE_SIZE, 512 << 10);
}

bool sl_cpu_multiplies_bytes(void)
{
        dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();

        return (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni ||
               (isa & dnnl_cpu_isa_avx2_vnni) == dnnl_cpu_isa_avx2_vnni;
}

bool sl_cpu_has_vnni(void)
{
        return sl_cpu_has_avx512() && __builtin_cpu_supports("avx512vnni") &&
               (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni;
}

/* Leaf 7's EDX: compilers' headers name these bits differently. */
#define CPUID_AMX_TILE (1u << 24)
#define CPUID_AMX_INT8 (1u << 25)

static bool has_tiles(void)
{
        unsigned a, b, c, d;

        return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & CPUID_AMX_TILE) && (d & CPUID_AMX_INT8);
}

/* Relaxed: as above; whoever asks twice is allowed twice. */
bool sl_cpu_has_amx(void)
{
        enum { UNKNOWN, NO, YES };
        static _Atomic int known;
        int answer = atomic_load_explicit(&known, memory_order_relaxed);

        if (answer == UNKNOWN) {
                bool has = sl_cpu_has_vnni() && has_tiles() &&
                           (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;

                answer = has && !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) ? YES : NO;
                atomic_store_explicit(&known, answer, memory_order_relaxed);
        }
        return answer == YES;
}
