/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of gpu_process.c where CUDA's compiler is not: each worker is told so. */
#include "gpu_process.h"

#include "base/cleanup.h"
#include "gpu_attach.h"

#include <errno.h>

int sl_gpu_main(int argc, char **argv)
{
        struct sl_gpu_attach attach;
        int r;

        (void)argc, (void)argv;
        while ((r = sl_gpu_attach_receive(&attach)) >= 0) {
                if (r == 0) {
                        sl_gpu_attach_wait();
                        continue;
                }
                sl_worker_link_ready(
                        &attach.link, -ENODEV, 0, "this build of Starling has no CUDA: build it where nvcc 13.0 or newer is");
                sl_worker_link_end(&attach.link);
                sl_cleanup_fd(&attach.plan_fd);
                sl_cleanup_fd(&attach.base_fd);
        }
        return 0;
}
