/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include "attach.h"
#include "base/clock.h"
#include "config.h"
#include "core_claims.h"
#include "cpu_quota.h"
#include "host_file.h"

#include <stdio.h>
#include <string.h>

#define STATUS_BYTES 8192
#define LIST_BYTES   1024
#define NODES_MAX    1024

static void read_cpus(const struct sl_host *host, const char *path, cpu_set_t *ret_cpus)
{
        char list[LIST_BYTES];

        sl_host_file(host->root, list, sizeof(list), "%s", path);
        sl_host_cpus(list, ret_cpus);
}

/* Where no file says it, those that are there; a host always has one. */
static void read_allowed(struct sl_host *host)
{
        char status[STATUS_BYTES], list[LIST_BYTES];

        sl_host_file(host->root, status, sizeof(status), "/proc/self/status");
        if (sl_host_field(status, "Cpus_allowed_list", list, sizeof(list)))
                sl_host_cpus(list, &host->machine.allowed);
        if (CPU_COUNT(&host->machine.allowed) == 0)
                host->machine.allowed = host->online;
        if (CPU_COUNT(&host->machine.allowed) == 0)
                CPU_SET(0, &host->machine.allowed);
}

static void read_nodes(struct sl_host *host)
{
        char list[LIST_BYTES];
        cpu_set_t cpus;

        for (int node = 0; node < NODES_MAX; node++) {
                if (!sl_host_file(host->root, list, sizeof(list), "/sys/devices/system/node/node%d/cpulist", node))
                        continue;
                sl_host_cpus(list, &cpus);
                for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                        if (CPU_ISSET(cpu, &cpus))
                                host->machine.node_of[cpu] = (uint16_t)node;
        }
}

static void find_socket_folder(struct sl_host *host)
{
        char path[PATH_MAX] = "", *slash;

        if (host->config->socket_dir)
                snprintf(path, sizeof(path), "%s/", host->config->socket_dir);
        else if (sl_socket_path(host->config->name, path, sizeof(path)) < 0)
                return;
        slash = strrchr(path, '/');
        *slash = 0;
        memcpy(host->socket_folder, path, (size_t)(slash - path) + 1);
}

/* As the daemon would, if no other runtime ran. */
static void place(struct sl_host *host)
{
        const struct sl_thread_cores_wish wish = {.dispatcher_cores = host->config->dispatcher_cores,
                .worker_cores = host->config->worker_cores,
                .numa_node = host->config->numa_node,
                .spin_ns = host->config->spin_us * SL_NS_PER_US};

        host->placed = sl_thread_cores_choose(&host->machine, &wish, &host->cores, &host->misplaced);
}

const char *sl_host_path(const struct sl_host *host, const char *path, char ret_path[PATH_MAX])
{
        if (snprintf(ret_path, PATH_MAX, "%s%s", host->root, path) >= PATH_MAX)
                ret_path[0] = 0;
        return ret_path;
}

void sl_host_init(
        struct sl_host *host, const char *root, const struct sl_probes *probes, const struct sl_config *config, bool configured)
{
        struct sl_cpu_quota quota;
        char folder[PATH_MAX];

        memset(host, 0, sizeof(*host));
        host->root = root;
        host->probes = probes;
        host->config = config;
        host->configured = configured;
        read_cpus(host, "/sys/devices/system/cpu/online", &host->online);
        read_cpus(host, "/sys/devices/system/cpu/isolated", &host->isolated);
        read_cpus(host, "/sys/devices/system/cpu/nohz_full", &host->tickless);
        read_allowed(host);
        read_nodes(host);
        sl_cpu_quota_read(root, &quota);
        host->machine.quota_milli = quota.milli;
        find_socket_folder(host);
        place(host);
        sl_core_claims_survey(sl_host_path(host, host->socket_folder, folder), &host->machine);
}
