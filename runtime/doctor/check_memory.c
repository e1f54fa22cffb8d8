/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: in which pages it comes, and how much of it there is. */
#include "checks.h"
#include "config.h"
#include "finding.h"
#include "host.h"
#include "host_file.h"
#include "measure.h"
#include "memory_room.h"
#include "stats.h"

#include <stdio.h>
#include <string.h>

#define MEMINFO_BYTES 4096
#define MIB(bytes)    ((double)(bytes) / (1ull << 20))
#define SPARE         4 /* times what a measurement takes has to be there */
#define HUGE_PAGES    "/sys/kernel/mm/transparent_hugepage/"

/* The word in brackets: "always [madvise] never". */
static const char *chosen(const char *choices, char ret_word[32])
{
        const char *begin = strchr(choices, '[');

        snprintf(ret_word, 32, "%.*s", begin ? (int)strcspn(begin + 1, "]") : 0, begin ? begin + 1 : "");
        return ret_word;
}

/* What is measured must push nobody out of a full control group, such as the runtime that is looked after. */
static bool has_room(const struct sl_host *host)
{
        struct sl_memory_room room;

        sl_memory_room_read(host->root, &room);
        return room.bytes / SPARE >= SL_MEASURE_HUGE_BYTES;
}

void sl_check_huge_pages(const struct sl_host *host, struct sl_finding *finding)
{
        bool measured = host->probes->huge_speed && has_room(host);
        double speed = measured ? host->probes->huge_speed() : 0;
        char enabled[64], defrag[64], enabled_word[32], defrag_word[32];

        if (!sl_host_file(host->root, enabled, sizeof(enabled), HUGE_PAGES "enabled")) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "no file says it: a kernel without transparent huge pages, or a closed /sys");
                return;
        }
        sl_host_file(host->root, defrag, sizeof(defrag), HUGE_PAGES "defrag");
        sl_found(finding, strstr(enabled, "[never]") ? SL_VERDICT_BETTER : SL_VERDICT_OK, "enabled: %s, defrag: %s",
                chosen(enabled, enabled_word), chosen(defrag, defrag_word));
        if (speed > 0) {
                sl_figure(finding, "huge_speed", speed);
                sl_found_too(finding, "; a stream of 64 MiB is read %.2f times as fast from them", speed);
        } else if (host->probes->huge_speed && !measured) {
                sl_found_too(finding, "; what they gain is not measured, as there is too little memory left");
        }
        if (finding->verdict == SL_VERDICT_OK)
                return;
        sl_change(finding, "echo madvise > " HUGE_PAGES "enabled; transparent_hugepage=madvise on the kernel's command line");
        sl_gain(finding, "activations of workers lie in huge pages: fewer misses of the TLB, and faults of 2 MiB at once");
}

void sl_check_reserved_pages(const struct sl_host *host, struct sl_finding *finding)
{
        char meminfo[MEMINFO_BYTES];
        uint64_t pages, kib, unused;

        if (!sl_host_file(host->root, meminfo, sizeof(meminfo), "/proc/meminfo")) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "/proc/meminfo cannot be read");
                return;
        }
        pages = sl_host_number(meminfo, "HugePages_Total", 0);
        unused = sl_host_number(meminfo, "HugePages_Free", 0);
        kib = sl_host_number(meminfo, "Hugepagesize", 0);
        sl_found(finding, unused ? SL_VERDICT_BETTER : SL_VERDICT_OK, "%llu pages of %llu KiB are reserved, %llu are free",
                (unsigned long long)pages, (unsigned long long)kib, (unsigned long long)unused);
        if (!unused)
                return;
        sl_change(finding, "sysctl -w vm.nr_hugepages=%llu, unless another program is about to use them",
                (unsigned long long)(pages - unused));
        sl_gain(finding, "%.0f MiB more memory; Starling takes transparent huge pages only", MIB(unused * kib * 1024));
}

void sl_check_memlock(const struct sl_host *host, struct sl_finding *finding)
{
        char limits[MEMINFO_BYTES], value[128], soft[32] = "";

        sl_host_file(host->root, limits, sizeof(limits), "/proc/self/limits");
        if (!sl_host_field(limits, "Max locked memory", value, sizeof(value)) || sscanf(value, "%31s", soft) != 1) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "/proc/self/limits does not say it");
                return;
        }
        sl_found(finding, SL_VERDICT_OK, "%s%s; Starling locks none", soft, *soft == 'u' ? "" : " bytes");
}

/* What the configuration says, against @max bytes of memory. */
static void look_at_sizes(const struct sl_config *config, bool configured, uint64_t max, struct sl_finding *finding)
{
        if (config->staging_bytes + config->stats_bytes > max) {
                finding->verdict = SL_VERDICT_WRONG;
                sl_found_too(finding, ", limits.staging_bytes and limits.stats_bytes together are %.0f MiB",
                        MIB(config->staging_bytes + config->stats_bytes));
                sl_change(finding, "lower limits.staging_bytes or limits.stats_bytes, or more memory");
                sl_gain(finding, "there is memory left for models and clients");
        } else if (configured && config->client_arena_bytes > max) {
                finding->verdict = SL_VERDICT_BETTER;
                sl_found_too(finding, ", limits.client.arena_bytes is %.0f MiB", MIB(config->client_arena_bytes));
                sl_change(finding, "limits.client.arena_bytes below limits.memory_max");
                sl_gain(finding, "a client that asks for too much is told so by its own limit, and not by what others have left");
        }
}

static void compare_memory(const struct sl_host *host, const struct sl_memory_room *room, struct sl_finding *finding)
{
        uint64_t usable = sl_memory_room_usable(room->bytes), max = host->config->memory_max ? host->config->memory_max : usable;

        sl_found(finding, SL_VERDICT_OK, "%.0f MiB are there (%s), limits.memory_max is %.0f MiB%s", MIB(room->bytes), room->source,
                MIB(max), host->config->memory_max ? "" : ", seven eighths of it");
        if (max <= room->bytes) {
                look_at_sizes(host->config, host->configured, max, finding);
                return;
        }
        finding->verdict = SL_VERDICT_WRONG;
        sl_change(finding, "limits.memory_max: %.0f MiB, or more memory for the control group (memory.max, --memory)", MIB(usable));
        sl_gain(finding, "the runtime refuses what does not fit, before the kernel kills a process for it");
}

void sl_check_memory(const struct sl_host *host, struct sl_finding *finding)
{
        struct sl_memory_room room;

        sl_memory_room_read(host->root, &room);
        if (room.bytes == UINT64_MAX)
                sl_found(finding, SL_VERDICT_UNKNOWN, "no file says how much there is");
        else
                compare_memory(host, &room, finding);
}

#define SHM "/dev/shm"

static void lack_shm(struct sl_finding *finding, const char *change)
{
        finding->verdict = SL_VERDICT_WRONG;
        sl_change(finding, "%s", change);
        sl_gain(finding, "a runtime that has no place for its stats page does not start");
}

/* Containers give 64 MiB, which is enough: clients' memory has no name there. */
static void compare_shm(const struct sl_host *host, const struct sl_space *space, const char *path, struct sl_finding *finding)
{
        static const char change[] =
                "mount -o remount,size=64M " SHM ", --shm-size=64m of a container, or a lower limits.stats_bytes";
        uint64_t wanted = host->config->stats_bytes, at_once = sl_stats_bytes_at_once(wanted);

        sl_found(finding, SL_VERDICT_OK, "%.0f MiB of %.0f are free, the stats page takes %.1f at once and up to %.0f",
                MIB(space->free_bytes), MIB(space->bytes), MIB(at_once), MIB(wanted));
        if (space->free_bytes < at_once) {
                lack_shm(finding, change);
        } else if (host->probes->may_write && !host->probes->may_write(path)) {
                sl_found_too(finding, ", but this user may not make files there");
                lack_shm(finding, "chmod 1777 " SHM);
        } else if (space->free_bytes < wanted) {
                finding->verdict = SL_VERDICT_BETTER;
                sl_change(finding, "%s", change);
                sl_gain(finding, "models that come when it is full are counted together");
        }
}

void sl_check_shm(const struct sl_host *host, struct sl_finding *finding)
{
        struct sl_space space;
        char path[PATH_MAX];

        if (!host->probes->space) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "no file says how large " SHM " is");
        } else if (host->probes->space(sl_host_path(host, SHM, path), &space) < 0) {
                sl_found(finding, SL_VERDICT_WRONG, SHM " is not there");
                lack_shm(finding, "mount -t tmpfs -o size=64M,mode=1777 tmpfs " SHM);
        } else {
                compare_shm(host, &space, path, finding);
        }
}
