/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include "base/processor.h"
#include "commit.h"
#include "cores.h"
#include "starling.h"

#include <jansson.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

static void kernel(char *ret_kernel, size_t bytes)
{
        struct utsname name;

        if (uname(&name) < 0)
                snprintf(ret_kernel, bytes, "unknown kernel");
        else
                snprintf(ret_kernel, bytes, "%s %s", name.sysname, name.release);
}

void sl_machine_line(char *ret_text, size_t bytes)
{
        char processor[SL_PROCESSOR_BYTES], release[140];

        sl_processor_name(processor);
        kernel(release, sizeof(release));
        snprintf(ret_text, bytes, "%s, %d CPUs, %s", processor, get_nprocs(), release);
}

/* The first line of a file; "unknown" where there is none, as in most virtual machines. */
static void first_line(const char *path, char *ret_line, size_t bytes)
{
        FILE *file = fopen(path, "re");

        snprintf(ret_line, bytes, "unknown");
        if (file && fgets(ret_line, (int)bytes, file))
                ret_line[strcspn(ret_line, "\n")] = 0;
        if (file)
                fclose(file);
}

static json_t *allowed_cpus(void)
{
        json_t *cpus = json_array();

        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (sl_cores_allowed(cpu))
                        json_array_append_new(cpus, json_integer(cpu));
        return cpus;
}

struct json_t *sl_machine_json(void)
{
        char processor[SL_PROCESSOR_BYTES], release[140], date[32], governor[32], isolated[64];
        double load[1] = {0};
        struct sysinfo info;
        time_t now = time(NULL);
        struct tm utc;

        sl_processor_name(processor);
        kernel(release, sizeof(release));
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
        if (getloadavg(load, 1) < 0)
                load[0] = 0;
        if (sysinfo(&info) < 0)
                memset(&info, 0, sizeof(info));
        first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof(governor));
        first_line("/sys/devices/system/cpu/isolated", isolated, sizeof(isolated));
        return json_pack("{s:s, s:s, s:i, s:I, s:s, s:f, s:s, s:s, s:o, s:s, s:s, s:s}", "date", date, "cpu", processor, "cpus",
                get_nprocs(), "memory_bytes", (json_int_t)((uint64_t)info.totalram * info.mem_unit), "kernel", release,
                "load_average", load[0], "governor", governor, "isolated_cpus", isolated, "allowed_cpus", allowed_cpus(),
                "starling", starling_version(), "commit", SL_COMMIT, "compiler", __VERSION__);
}
