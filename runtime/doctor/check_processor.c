/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor can do, and at which pace. */
#include "backend.h"
#include "checks.h"
#include "config.h"
#include "finding.h"
#include "host.h"
#include "host_file.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUINFO_BYTES 8192
#define FLAGS_BYTES   4096

/* Does a word stand in the text, with blanks around it? */
static bool has_word(const char *text, const char *word)
{
        size_t bytes = strlen(word);

        for (const char *at = text; (at = strstr(at, word)); at += bytes)
                if ((at == text || at[-1] == ' ') && (at[bytes] == ' ' || at[bytes] == 0))
                        return true;
        return false;
}

static void show_features(const char *flags, struct sl_finding *finding)
{
        static const char *const features[] = {"avx2", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512dq", "avx512vl",
                "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"};

        for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
                if (has_word(flags, features[i]))
                        sl_found_too(finding, " %s", features[i]);
}

/* What a user's environment hides of this host; of another one nothing is known. */
static const char *hidden_beyond(const struct sl_host *host)
{
        const char *limit = *host->root ? NULL : getenv("ONEDNN_MAX_CPU_ISA");

        return limit && *limit && strcmp(limit, "DEFAULT") != 0 && strcmp(limit, "ALL") != 0 ? limit : NULL;
}

void sl_check_cpu_features(const struct sl_host *host, struct sl_finding *finding)
{
        char cpuinfo[CPUINFO_BYTES], flags[FLAGS_BYTES], model[128];
        const char *hidden = hidden_beyond(host);

        sl_host_file(host->root, cpuinfo, sizeof(cpuinfo), "/proc/cpuinfo");
        if (!sl_host_field(cpuinfo, "flags", flags, sizeof(flags))) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "/proc/cpuinfo lists no flags");
                return;
        }
        sl_host_field(cpuinfo, "model name", model, sizeof(model));
        sl_found(finding, SL_VERDICT_OK, "%s:", *model ? model : "a processor");
        show_features(flags, finding);
        if (!has_word(flags, "avx2") || !has_word(flags, "fma")) {
                finding->verdict = SL_VERDICT_BETTER;
                sl_found_too(finding, " no avx2 with fma");
                sl_change(finding, has_word(flags, "hypervisor")
                                           ? "a CPU model that hides nothing from the virtual machine (-cpu host)"
                                           : "a processor with AVX2, better AVX-512");
                sl_gain(finding, "own kernels need AVX2 and FMA; without them only oneDNN's for older processors are left");
        } else if (hidden) {
                finding->verdict = SL_VERDICT_BETTER;
                sl_found_too(finding, "; ONEDNN_MAX_CPU_ISA=%s", hidden);
                sl_change(finding, "unset ONEDNN_MAX_CPU_ISA for the runtime");
                sl_gain(finding, "kernels take all instructions that the processor has");
        }
}

void sl_check_core_figures(const struct sl_host *host, struct sl_finding *finding)
{
        struct sl_core_figures figures;

        if (!host->probes->core || !host->probes->core(host->config, &figures)) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "nothing is measured yet");
                if (host->probes->core)
                        sl_change(finding, "starling version --host, or the first model that is loaded");
                return;
        }
        sl_found(finding, SL_VERDICT_OK, "a core does %.3g float32 operations/s and reads %.3g bytes/s of memory", figures.flops,
                figures.stream);
        sl_figure(finding, "flops", figures.flops);
        sl_figure(finding, "stream_bytes_per_s", figures.stream);
        sl_figure(finding, "near_bytes_per_s", figures.near);
        sl_figure(finding, "onednn_call_s", figures.onednn_call);
}

/* Of the processors that may be used, those whose governor is another. */
static uint32_t count_governed(const struct sl_host *host, const char *wanted, char ret_other[64], uint32_t *ret_all)
{
        uint32_t n = 0;
        char governor[64];

        *ret_all = 0;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
                if (!CPU_ISSET(cpu, &host->machine.allowed) ||
                        !sl_host_file(host->root, governor, sizeof(governor),
                                "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu))
                        continue;
                ++*ret_all;
                if (strcmp(governor, wanted) == 0)
                        continue;
                n++;
                memcpy(ret_other, governor, sizeof(governor));
        }
        return n;
}

/* Are frequencies above the nominal one switched off? */
static bool is_turbo_off(const struct sl_host *host)
{
        char text[8];

        if (sl_host_file(host->root, text, sizeof(text), "/sys/devices/system/cpu/intel_pstate/no_turbo"))
                return text[0] == '1';
        return sl_host_file(host->root, text, sizeof(text), "/sys/devices/system/cpu/cpufreq/boost") && text[0] == '0';
}

void sl_check_governor(const struct sl_host *host, struct sl_finding *finding)
{
        char governor[64] = "performance";
        uint32_t all, others = count_governed(host, "performance", governor, &all);

        if (!all) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "no file says it: a hypervisor or the firmware chooses");
                return;
        }
        sl_found(finding, others ? SL_VERDICT_BETTER : SL_VERDICT_OK, "%s on %u of %u", governor, others ? others : all, all);
        if (others) {
                sl_change(finding, "cpupower frequency-set -g performance");
                sl_gain(finding, "what comes after a pause is computed at full frequency at once");
        } else if (is_turbo_off(host)) {
                finding->verdict = SL_VERDICT_BETTER;
                sl_found_too(finding, ", frequencies above the nominal one are off");
                sl_change(finding, "cpupower set --turbo-boost 1");
                sl_gain(finding, "a core that computes while others do not is faster; switched off, times differ less");
        }
}

#define IDLE "/sys/devices/system/cpu/cpu%d/cpuidle/state%d/"

/* A wake-up by futex takes about that long by itself. */
#define LATENCY_US 50

/* The deepest state that is not switched off: its exit latency. 0: none is said. */
static uint64_t deepest_us(const struct sl_host *host, int cpu, char ret_name[32])
{
        uint64_t deepest = 0;
        char text[32], disabled[8];

        for (int state = 0; sl_host_file(host->root, text, sizeof(text), IDLE "latency", cpu, state); state++) {
                uint64_t us = sl_host_number(text, "", 0);

                sl_host_file(host->root, disabled, sizeof(disabled), IDLE "disable", cpu, state);
                if (us < deepest || disabled[0] == '1')
                        continue;
                deepest = us;
                sl_host_file(host->root, ret_name, 32, IDLE "name", cpu, state);
        }
        return deepest;
}

void sl_check_idle_states(const struct sl_host *host, struct sl_finding *finding)
{
        char name[32] = "";
        uint64_t us = 0;

        for (int cpu = 0; cpu < CPU_SETSIZE && !us; cpu++)
                if (CPU_ISSET(cpu, &host->machine.allowed))
                        us = deepest_us(host, cpu, name);
        if (!*name) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "no file says it: a hypervisor or the firmware chooses");
                return;
        }
        sl_found(finding, us > LATENCY_US ? SL_VERDICT_BETTER : SL_VERDICT_OK, "the deepest is %s, which takes %llu us to leave",
                name, (unsigned long long)us);
        if (us <= LATENCY_US)
                return;
        sl_change(finding, "cpupower idle-set -D %d, or a program that holds /dev/cpu_dma_latency at %d", LATENCY_US, LATENCY_US);
        sl_gain(finding, "a thread that is woken starts up to %llu us sooner; costs power", (unsigned long long)us);
}
