/* SPDX-License-Identifier: Apache-2.0 */
/* What the system lets a process of this user have. */
#include "checks.h"
#include "config.h"
#include "finding.h"
#include "host.h"
#include "host_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMITS_BYTES 4096
#define STATUS_BYTES 8192

/* "Max open files            1024                 524288               files": the second is the hard one. False: not said. */
static bool read_hard_limit(const struct sl_host *host, const char *name, uint64_t *ret_limit)
{
        char limits[LIMITS_BYTES], value[128], hard[32];

        sl_host_file(host->root, limits, sizeof(limits), "/proc/self/limits");
        if (!sl_host_field(limits, name, value, sizeof(value)) || sscanf(value, "%*s %31s", hard) != 1)
                return false;
        *ret_limit = strcmp(hard, "unlimited") == 0 ? UINT64_MAX : strtoull(hard, NULL, 10);
        return true;
}

/* Of the runtime itself with its models, and of each client with one region of its arena. */
#define OWN_FILES    128u
#define CLIENT_FILES 6u

void sl_check_open_files(const struct sl_host *host, struct sl_finding *finding)
{
        uint64_t limit, wanted = OWN_FILES + (uint64_t)CLIENT_FILES * host->config->clients_max;

        if (!read_hard_limit(host, "Max open files", &limit)) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "/proc/self/limits does not say it");
                return;
        }
        sl_found(finding, limit < wanted ? SL_VERDICT_WRONG : SL_VERDICT_OK,
                "at most %llu; %u clients (limits.clients) need about %llu", (unsigned long long)limit, host->config->clients_max,
                (unsigned long long)wanted);
        if (limit >= wanted)
                return;
        sl_change(finding, "LimitNOFILE=65536 of the unit, ulimit -Hn 65536, or limits.clients: %llu",
                (unsigned long long)(limit > OWN_FILES + CLIENT_FILES ? (limit - OWN_FILES) / CLIENT_FILES : 1));
        sl_gain(finding, "as many clients can attach as the configuration promises");
}

/* Of `nice` as the limit counts it: 20 less the lowest that may be had. */
#define NICE_LIMIT   30
#define CAP_SYS_NICE 23

static bool may_be_nice(const struct sl_host *host, bool *ret_known)
{
        char status[STATUS_BYTES], capabilities[64];
        uint64_t limit = 0;
        bool limited = read_hard_limit(host, "Max nice priority", &limit);

        sl_host_file(host->root, status, sizeof(status), "/proc/self/status");
        *ret_known = sl_host_field(status, "CapEff", capabilities, sizeof(capabilities)) || limited;
        return limit >= NICE_LIMIT || strtoull(capabilities, NULL, 16) >> CAP_SYS_NICE & 1;
}

void sl_check_priority(const struct sl_host *host, struct sl_finding *finding)
{
        bool known, may = may_be_nice(host, &known);
        cpu_set_t common;

        CPU_AND(&common, &host->cores.dispatcher_cores, &host->cores.worker_cores);
        if (may || !known) {
                sl_found(finding, known ? SL_VERDICT_OK : SL_VERDICT_UNKNOWN, known ? "nice -10 is allowed" : "no file says it");
                return;
        }
        sl_found(finding, CPU_COUNT(&common) ? SL_VERDICT_BETTER : SL_VERDICT_OK, "nice -10 is not allowed; the dispatcher %s",
                CPU_COUNT(&common) ? "shares its processor with workers" : "has a processor without workers");
        if (finding->verdict == SL_VERDICT_OK)
                return;
        sl_change(finding, "LimitNICE=-10 of the unit; without one `ulimit -e 30` as root before, or CAP_SYS_NICE");
        sl_gain(finding, "a dispatcher that wakes up goes before a worker that computes on its processor");
}
