/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_options.h"

#include "attach.h"
#include "base/clock.h"
#include "stats.h"

void sl_runtime_options_init(struct sl_runtime_options *options)
{
        *options = (struct sl_runtime_options){
                .name = SL_SOCKET_NAME,
                .client_quota = {.arena_bytes = 1ull << 30, .in_flight = 4096},
                .uid_quota = {.arena_bytes = 4ull << 30, .in_flight = 16384},
                .uid_shapes = 60,
                .uid_log_lines = 120,
                .clients_max = 64,
                .stats_bytes = SL_STATS_BYTES_DEFAULT,
                .staging_bytes = 64ull << 20,
                .memory_max = UINT64_MAX,
                .load_wait_ns = 60 * SL_NS_PER_SECOND,
                .spin_ns = 50 * SL_NS_PER_US,
                .inline_ns = 20 * SL_NS_PER_US,
                .grace_ns = 5 * SL_NS_PER_SECOND,
                .compile_jobs = 1,
                .fuse_bytes = 64ull << 20,
                .autoscale = {.slack = 1.05, .core_price = 1, .idle_least_ns = SL_NS_PER_SECOND},
        };
}
