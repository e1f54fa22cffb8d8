/* SPDX-License-Identifier: Apache-2.0 */
#include "device_let.h"

#include "base/error.h"
#include "base/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 256

static int parse_ranges(const char *text, cpu_set_t *cores, struct sl_error *error)
{
        char copy[TEXT_BYTES], wish[SL_WISH_BYTES], *rest = copy, *range;

        if (strlen(text) >= sizeof(copy))
                return sl_error_set(error, EINVAL, "device \"%s\": a name of more than %d bytes", text, TEXT_BYTES - 1);
        strcpy(copy, text);
        CPU_ZERO(cores);
        while ((range = strsep(&rest, "+")))
                if (sl_value_cores(range, cores, wish) < 0)
                        return sl_error_set(error, EINVAL, "device \"cpu:%s\": \"%s\" is %s", text, range, wish);
        return 0;
}

static int print_name(struct sl_device_let *let)
{
        int used = snprintf(let->name, sizeof(let->name), "cpu:");

        for (int core = 0; core < CPU_SETSIZE; core++) {
                int last = core;

                if (!CPU_ISSET(core, &let->cores))
                        continue;
                while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &let->cores))
                        last++;
                used += snprintf(let->name + used, sizeof(let->name) - (size_t)used, last > core ? "%s%d-%d" : "%s%d",
                        used > 4 ? "+" : "", core, last);
                if (used >= (int)sizeof(let->name))
                        return -EINVAL;
                core = last;
        }
        return 0;
}

/* Of all that may be used, where those are too many pieces for it, "cpu": in the same surroundings that is the same. */
static int find_name(const char *text, const cpu_set_t *allowed, struct sl_device_let *let, struct sl_error *error)
{
        if (print_name(let) == 0)
                return 0;
        if (!CPU_EQUAL(&let->cores, allowed))
                return sl_error_set(error, EINVAL, "device \"%s\": a name of more than %zu bytes", text, sizeof(let->name) - 1);
        strcpy(let->name, "cpu");
        return 0;
}

static int check_allowed(const char *text, const cpu_set_t *cores, const cpu_set_t *allowed, struct sl_error *error)
{
        for (int core = 0; core < CPU_SETSIZE; core++)
                if (CPU_ISSET(core, cores) && !CPU_ISSET(core, allowed))
                        return sl_error_set(
                                error, EINVAL, "device \"%s\": core %d is not among those that may be used", text, core);
        return 0;
}

int sl_device_let_parse(const char *text, const cpu_set_t *allowed, struct sl_device_let *ret_let, struct sl_error *error)
{
        struct sl_device_let let = {.n_cores = 0};
        cpu_set_t own;
        int r = 0;

        if (!allowed && sched_getaffinity(0, sizeof(own), &own) < 0)
                return sl_error_set(error, errno, "the cores of this process: %s", strerror(errno));
        allowed = allowed ? allowed : &own;
        if (strcmp(text, "cpu") == 0)
                let.cores = *allowed;
        else if (strncmp(text, "cpu:", 4) == 0)
                r = parse_ranges(text + 4, &let.cores, error);
        else
                return sl_error_set(error, EINVAL, "device \"%s\": not cpu, cpu:CORE or cpu:CORE-CORE+CORE", text);
        r = r < 0 ? r : check_allowed(text, &let.cores, allowed, error);
        r = r < 0 ? r : find_name(text, allowed, &let, error);
        if (r < 0)
                return r;
        let.n_cores = (uint32_t)CPU_COUNT(&let.cores);
        *ret_let = let;
        return 0;
}

int sl_device_let_core(const struct sl_device_let *let, uint32_t index)
{
        uint32_t left = index % let->n_cores;

        for (int core = 0; core < CPU_SETSIZE; core++)
                if (CPU_ISSET(core, &let->cores) && left-- == 0)
                        return core;
        return -1;
}
