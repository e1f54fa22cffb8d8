/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a test's compilers come about: each is started, or forked by a zygote. The build picks one of two files. One thread.
 */
#pragma once

struct sl_compile_zygote;

/* One that is ready, the same until starter_end(); NULL: they are started. */
struct sl_compile_zygote *starter_zygote(const char *program);
void starter_end(void);
