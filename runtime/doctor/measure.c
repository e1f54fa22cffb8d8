/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "probes.h"

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS       10
#define CALLS        2000
#define GAPS_NS      (100 * SL_NS_PER_MS)
#define GAP_NS       (5 * SL_NS_PER_US) /* what is shorter a clock may take by itself */
#define STREAM_BYTES (64ull << 20)
#define HUGE_BYTES   (2ull << 20)
#define READS        3

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* of Linux 6.1, which older headers lack */
#endif

static void read_clock(void)
{
        (void)sl_clock_ns();
}

static void call_system(void)
{
        (void)syscall(SYS_getppid);
}

static double least_ns(void (*run)(void))
{
        uint64_t least = UINT64_MAX;

        for (int round = 0; round < ROUNDS; round++) {
                uint64_t begun_ns = sl_clock_ns();

                for (int i = 0; i < CALLS; i++)
                        run();
                uint64_t took_ns = sl_clock_ns() - begun_ns;
                least = took_ns < least ? took_ns : least;
        }
        return (double)least / CALLS;
}

double sl_measure_clock_ns(void)
{
        return least_ns(read_clock);
}

double sl_measure_call_ns(void)
{
        return least_ns(call_system);
}

static struct sl_gaps watch_gaps(void)
{
        uint64_t begun_ns = sl_clock_ns(), last_ns = begun_ns, lost_ns = 0, longest_ns = 0;

        while (last_ns - begun_ns < GAPS_NS) {
                uint64_t now_ns = sl_clock_ns(), gap_ns = now_ns - last_ns;

                last_ns = now_ns;
                lost_ns += gap_ns > GAP_NS ? gap_ns : 0;
                longest_ns = gap_ns > longest_ns ? gap_ns : longest_ns;
        }
        return (struct sl_gaps){
                .share = (double)lost_ns / (double)(last_ns - begun_ns), .longest_us = (double)longest_ns / SL_NS_PER_US};
}

bool sl_measure_gaps(int cpu, struct sl_gaps *ret_gaps)
{
        cpu_set_t before, only;

        CPU_ZERO(&only);
        CPU_SET(cpu, &only);
        if (sched_getaffinity(0, sizeof(before), &before) < 0 || sched_setaffinity(0, sizeof(only), &only) < 0)
                return false;
        *ret_gaps = watch_gaps();
        (void)sched_setaffinity(0, sizeof(before), &before);
        return true;
}

/* One word of each line, as fast as memory gives them. */
static uint64_t read_ns(const unsigned char *bytes)
{
        uint64_t least = UINT64_MAX, sum = 0;

        for (int read = 0; read < READS; read++) {
                uint64_t begun_ns = sl_clock_ns();

                for (uint64_t i = 0; i < STREAM_BYTES; i += SL_LINE_BYTES)
                        sum += *(const volatile uint64_t *)(bytes + i);
                uint64_t took_ns = sl_clock_ns() - begun_ns;
                least = took_ns < least ? took_ns : least;
        }
        return sum ? UINT64_MAX : least;
}

double sl_measure_huge_speed(void)
{
        size_t room = STREAM_BYTES + HUGE_BYTES;
        unsigned char *mapped = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        double speed = 0;

        if (mapped == MAP_FAILED)
                return 0;
        unsigned char *bytes = (unsigned char *)sl_align_up((uintptr_t)mapped, HUGE_BYTES);
        (void)madvise(bytes, STREAM_BYTES, MADV_NOHUGEPAGE);
        for (uint64_t i = 0; i < STREAM_BYTES; i += SL_PAGE_BYTES)
                *(volatile unsigned char *)(bytes + i) = 0;
        uint64_t small_ns = read_ns(bytes);
        if (madvise(bytes, STREAM_BYTES, MADV_HUGEPAGE) == 0 && madvise(bytes, STREAM_BYTES, MADV_COLLAPSE) == 0)
                speed = (double)small_ns / (double)read_ns(bytes);
        munmap(mapped, room);
        return speed;
}
