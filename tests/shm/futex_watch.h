/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the insurance of sleepers away. Whoever sleeps on a futex looks again after a while even if nobody wakes it, which would
 * hide a wake-up that is lost. A test that is linked with futex_watch.c has its waits of 10 ms and more last up to
 * FUTEX_LIMIT_SECONDS; what that ends was not woken. It stands before the C library's syscall(), also for shared libraries. Any
 * thread.
 */
#pragma once

#include <stdint.h>

#define FUTEX_LIMIT_SECONDS 100

/* Waits that began, and those of them that only the limit ended. */
uint32_t futex_sleeps(void);
uint32_t futex_sleeps_lost(void);
