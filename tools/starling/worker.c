/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"
#include "worker.h"

int command_worker(int argc, char **argv)
{
        return sl_worker_main(argc, argv);
}
