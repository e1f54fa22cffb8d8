/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_main.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cuda_front/module.h"
#include "gpu_attach.h"

#include <signal.h>
#include <stdlib.h>

/* They are the runtime's, which ends this process. */
static void ignore_signals(void)
{
        signal(SIGHUP, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
}

static int refuse_all(int status, const char *why)
{
        struct sl_gpu_attach attach;
        int r;

        while ((r = sl_gpu_attach_receive(&attach)) >= 0) {
                if (r == 0) {
                        sl_gpu_attach_wait();
                        continue;
                }
                sl_worker_link_ready(&attach.link, status, 0, why);
                sl_worker_link_end(&attach.link);
                sl_cleanup_fd(&attach.plan_fd);
                sl_cleanup_fd(&attach.base_fd);
        }
        return 0;
}

int sl_gpu_main(int argc, char **argv)
{
        const struct sl_cuda_module *module;
        struct sl_error error = {""};
        char *end = NULL;
        unsigned long number = argc > 1 ? strtoul(argv[1], &end, 10) : 0;
        int r;

        ignore_signals();
        if (argc != 2 || *end)
                return 1;
        r = sl_cuda_module_open(&module, &error);
        if (r == 0)
                return module->serve((uint32_t)number);
        (void)sl_error_prefix(&error, r, "gpu:%lu", number);
        return refuse_all(r, error.text);
}
