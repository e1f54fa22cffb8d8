/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_sandbox.h"

#include "cuda/libraries.h"
#include "gpu_calls.h"
#include "landlock.h"
#include "sandbox.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define SL_GPU_OPEN "STARLING_GPU_OPEN"

/* Of one GPU's driver: control nodes and those of all its devices. */
#define NODES_MAX 96

static const char *const system_folders[] = {"/usr", "/lib", "/lib64", "/etc", "/proc", "/sys"};

#define SYSTEM_FOLDERS (sizeof(system_folders) / sizeof(system_folders[0]))

/*
 * The kernel forgets its threads' folder, and with it that it may be written to, when nobody has it open; so it stays open for as
 * long as the process is there.
 */
static void hold_threads(void)
{
        (void)!open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int enter_landlock(const glob_t *nodes)
{
        struct sl_landlock_path paths[SYSTEM_FOLDERS + SL_CUDA_FOLDERS + 1 + NODES_MAX];
        char of_libraries[SL_CUDA_FOLDERS][PATH_MAX];
        uint32_t n_libraries = sl_cuda_libraries_folders(of_libraries);
        size_t n = 0;

        for (size_t i = 0; i < SYSTEM_FOLDERS; i++)
                paths[n++] = (struct sl_landlock_path){.name = system_folders[i]};
        for (uint32_t i = 0; i < n_libraries; i++)
                paths[n++] = (struct sl_landlock_path){.name = of_libraries[i]};
        paths[n++] = (struct sl_landlock_path){.name = "/proc/self/task", .written = true};
        for (size_t i = 0; i < nodes->gl_pathc && i < NODES_MAX; i++)
                paths[n++] = (struct sl_landlock_path){.name = nodes->gl_pathv[i], .written = true};
        return sl_landlock_enter(paths, n);
}

const char *sl_gpu_sandbox_enter(const char *devices)
{
        char pattern[PATH_MAX];
        glob_t nodes = {.gl_pathc = 0};
        int landlock, filter;

        if (getenv(SL_GPU_OPEN)) /* whether the sandbox is what a driver stumbles on: for people who look for that */
                return NULL;
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        hold_threads();
        snprintf(pattern, sizeof(pattern), "%s/nvidia*", devices);
        (void)glob(pattern, 0, NULL, &nodes); /* without nodes there is nothing to open anew */
        landlock = enter_landlock(&nodes);
        globfree(&nodes);
        filter = sl_gpu_calls_refuse();
        return sl_sandbox_missing(landlock < 0, filter < 0);
}
