/* SPDX-License-Identifier: Apache-2.0 */
#include "child_environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/*
 * The child takes hundreds of megabytes once and page by page: with huge pages, and from the heap instead of one mapping for each
 * tensor, that costs half as much; and what is freed at the end of the heap stays there, or it would be cleared again for the next
 * tensor. Only the C library's start reads these settings. And oneDNN is not to look for a profiler's
 * library in a process that cannot open one, nor is the NVIDIA driver, which cuDNN starts while it plans for a GPU's figures, to
 * find a device: it would take addresses for its memory, and choose by it.
 */
static const char *const own_settings[] = {
        "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824:glibc.malloc.top_pad=8388608"
        ":glibc.malloc.trim_threshold=1073741824",
        "DNNL_JIT_PROFILE=0", "CUDA_VISIBLE_DEVICES=-1",
        "LD_BIND_NOW=1", /* a zygote's children are not to look for functions one by one */
};

#define OWN_SETTINGS (sizeof(own_settings) / sizeof(own_settings[0]))

static bool is_own_setting(const char *entry)
{
        for (size_t i = 0; i < OWN_SETTINGS; i++) {
                if (!strncmp(entry, own_settings[i], strcspn(own_settings[i], "=") + 1))
                        return true;
        }
        return false;
}

char **sl_child_environment(void)
{
        char **environment;
        size_t n = 0, kept = OWN_SETTINGS;

        while (environ && environ[n])
                n++;
        environment = calloc(n + OWN_SETTINGS + 1, sizeof(*environment));
        if (!environment)
                return NULL;
        memcpy(environment, own_settings, sizeof(own_settings));
        for (size_t i = 0; i < n; i++) {
                if (!is_own_setting(environ[i]))
                        environment[kept++] = environ[i];
        }
        return environment;
}
