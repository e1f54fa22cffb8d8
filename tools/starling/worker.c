/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"
#include "command.h"
#include "gpu_main.h"

int command_worker(int argc, char **argv)
{
        return sl_worker_main(argc, argv);
}

int command_gpu(int argc, char **argv)
{
        return sl_gpu_main(argc, argv);
}
