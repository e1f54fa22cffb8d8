/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "command.h"

int command_bench(int argc, char **argv)
{
        return sl_bench_main(argc, argv);
}
