/* SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include <stdio.h>
#include <string.h>

#define MORE      ",..."
#define ALL_BYTES (5 * CPU_SETSIZE)

static void print_all(const cpu_set_t *cores, char ret_text[ALL_BYTES])
{
        int used = 0;

        ret_text[0] = 0;
        for (int first = 0; first < CPU_SETSIZE; first++) {
                int last = first;

                if (!CPU_ISSET(first, cores))
                        continue;
                while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cores))
                        last++;
                used += sprintf(ret_text + used, last > first ? "%s%d-%d" : "%s%d", used ? "," : "", first, last);
                first = last;
        }
}

const char *sl_cores_text(const cpu_set_t *cores, char *ret_text, size_t bytes)
{
        char all[ALL_BYTES];
        size_t cut;

        print_all(cores, all);
        if (strlen(all) < bytes)
                return strcpy(ret_text, all);
        cut = bytes > sizeof(MORE) ? bytes - sizeof(MORE) : 0;
        while (cut > 0 && all[cut] != ',')
                cut--;
        snprintf(ret_text, bytes, "%.*s%s", (int)cut, all, cut ? MORE : MORE + 1);
        return ret_text;
}
