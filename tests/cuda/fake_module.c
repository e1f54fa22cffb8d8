/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA module with a backend that computes by `ref` on the fake driver (fake_backend.h); all else is the module's. With
 * FAKE_GPU_LIES its process hands the runtime what is no file of a GPU's choices, and then says of each worker why it cannot be:
 * "open", in a memory file that it can still change; "garbage", in one that is sealed; "twice", more than once.
 */
#include "cuda_front/module.h"
#include "fake_backend.h"
#include "gpu_attach.h"
#include "gpu_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int make_garbage(bool sealed)
{
        int fd = memfd_create("lies", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0 || ftruncate(fd, 4096) < 0)
                _exit(1);
        if (sealed)
                (void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
        return fd;
}

static void lie(struct sl_gpu_attach *attach, const char *how)
{
        for (uint32_t i = 0; i < (strcmp(how, "twice") ? 1 : 5); i++) {
                int fd = make_garbage(strcmp(how, "open") != 0);

                sl_worker_link_tell_choices(&attach->link, fd, "");
                close(fd);
        }
        sl_worker_link_ready(&attach->link, -EIO, 0, "it has lied");
}

static int lie_to_all(const char *how)
{
        struct sl_gpu_attach attach;
        int r;

        while ((r = sl_gpu_attach_receive(&attach)) >= 0) {
                if (r == 0) {
                        sl_gpu_attach_wait();
                        continue;
                }
                if (attach.asks)
                        sl_worker_link_ready(&attach.link, 0, 0, NULL);
                else
                        lie(&attach, how);
                sl_worker_link_end(&attach.link);
        }
        return 0;
}

static int serve(uint32_t gpu)
{
        const char *how = getenv("FAKE_GPU_LIES");

        return how ? lie_to_all(how) : sl_gpu_serve(gpu);
}

__attribute__((visibility("default"))) const struct sl_cuda_module starling_cuda_module = {
        .version = SL_CUDA_MODULE_VERSION,
        .release = SL_CUDA_MODULE_RELEASE,
        .backend = &fake_backend,
        .serve = serve,
};
