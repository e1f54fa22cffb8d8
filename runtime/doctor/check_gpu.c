/* SPDX-License-Identifier: Apache-2.0 */
/* Graphics processors: which there are, and what drives them. */
#include "checks.h"
#include "cuda_front/module.h"
#include "finding.h"
#include "host.h"
#include "host_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PCI "/sys/bus/pci/devices"

/* The class of displays, of which 3D controllers are one. */
#define CLASS_DISPLAY 0x03

static const struct {
        unsigned long id;
        const char *name;
} vendors[] = {{0x10de, "NVIDIA"}, {0x1002, "AMD"}, {0x8086, "Intel"}};

static unsigned long read_hex(const struct sl_host *host, const char *device, const char *file)
{
        char text[32];

        sl_host_file(host->root, text, sizeof(text), PCI "/%s/%s", device, file);
        return strtoul(text, NULL, 16);
}

/* Adds " NVIDIA 10de:2330" for each. Return: how many are NVIDIA's. */
static uint32_t list_devices(const struct sl_host *host, DIR *folder, uint32_t *ret_all, struct sl_finding *finding)
{
        const struct dirent *entry;
        uint32_t nvidia = 0;

        while ((entry = readdir(folder))) {
                unsigned long vendor = read_hex(host, entry->d_name, "vendor");

                if (entry->d_name[0] == '.' || read_hex(host, entry->d_name, "class") >> 16 != CLASS_DISPLAY)
                        continue;
                for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++) {
                        if (vendors[i].id != vendor)
                                continue;
                        sl_found_too(finding, "%s%s %04lx:%04lx", *ret_all ? ", " : "", vendors[i].name, vendor,
                                read_hex(host, entry->d_name, "device"));
                        nvidia += i == 0;
                        ++*ret_all;
                }
        }
        return nvidia;
}

static bool has_library(const struct sl_host *host, const char *name)
{
        static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
                "/usr/local/lib/x86_64-linux-gnu", "/usr/local/lib/aarch64-linux-gnu", "/usr/local/lib64", "/usr/local/lib",
                "/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"};
        char path[PATH_MAX], below[PATH_MAX];

        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
                snprintf(below, sizeof(below), "%s/%s", folders[i], name);
                if (access(sl_host_path(host, below, path), F_OK) == 0)
                        return true;
        }
        return false;
}

/* Of another host it is not known where its program lies: the module is looked for where packages have it. */
static bool has_module(const struct sl_host *host)
{
        char path[PATH_MAX];

        return *host->root ? has_library(host, "starling/" SL_CUDA_MODULE_NAME) : sl_cuda_module_find(path, NULL);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86  ..." Return: false: there is none. */
static bool show_driver(const struct sl_host *host, struct sl_finding *finding)
{
        static const char *const libraries[] = {"libcuda.so.1", "libcudart.so.13", "libcublasLt.so.13", "libcudnn.so.9"};
        char text[512], version[256];

        if (!sl_host_file(host->root, text, sizeof(text), "/proc/driver/nvidia/version") ||
                !sl_host_field(text, "NVRM version", version, sizeof(version)))
                return false;
        sl_found_too(finding, "; driver: %s; libraries:", version);
        for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
                if (has_library(host, libraries[i]))
                        sl_found_too(finding, " %s", libraries[i]);
        return true;
}

void sl_check_gpu(const struct sl_host *host, struct sl_finding *finding)
{
        uint32_t all = 0, nvidia = 0;
        char path[PATH_MAX];
        DIR *folder = opendir(sl_host_path(host, PCI, path));
        bool used = has_module(host);

        sl_found(finding, SL_VERDICT_OK, "%s", "");
        if (folder) {
                nvidia = list_devices(host, folder, &all, finding);
                closedir(folder);
        }
        if (!all)
                sl_found(finding, SL_VERDICT_OK, "none");
        bool driven = nvidia && show_driver(host, finding);
        if (all && !used)
                sl_found_too(finding, "; no " SL_CUDA_MODULE_NAME ", so that all is computed on the processor");
        if (!nvidia || (used && driven))
                return;
        finding->verdict = SL_VERDICT_BETTER;
        if (!driven)
                sl_found_too(finding, "; no driver");
        sl_change(finding, "%s%s%s", driven ? "" : "the driver of NVIDIA, and for a container its devices (--gpus)",
                driven || used ? "" : "; ", used ? "" : "the package starling-cuda");
        sl_gain(finding, "models with `device: gpu:0` run");
}
