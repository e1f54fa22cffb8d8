/* SPDX-License-Identifier: Apache-2.0 */
#include "base/processor.h"

#include <stdio.h>
#include <string.h>

#define FIRST_BYTES 4096 /* of the first processor's part; its flags stand behind what is looked for */

/* Behind "@key<blanks>: ", to the end of its line: the first of that key. Return: NULL without. */
static const char *field_in(const char *text, const char *key, int *ret_length)
{
        for (size_t n = strlen(key); text && *text; text = strchr(text, '\n'), text = text ? text + 1 : NULL) {
                const char *colon = text + n;

                if (strncmp(text, key, n) != 0)
                        continue;
                colon += strspn(colon, " \t");
                if (*colon != ':')
                        continue;
                colon += 1 + strspn(colon + 1, " \t");
                *ret_length = (int)strcspn(colon, "\n");
                return *ret_length ? colon : NULL;
        }
        return NULL;
}

void sl_processor_name_in(const char *cpuinfo, char ret_name[SL_PROCESSOR_BYTES])
{
        static const char *const keys[][2] = {{"cpu family", "family"}, {"model", "model"}};
        int length;
        const char *field = field_in(cpuinfo, "model name", &length);

        snprintf(ret_name, SL_PROCESSOR_BYTES, "%.*s", field ? length : 7, field ? field : "unknown");
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                size_t used = strlen(ret_name);

                field = field_in(cpuinfo, keys[i][0], &length);
                if (field)
                        snprintf(ret_name + used, SL_PROCESSOR_BYTES - used, ", %s %.*s", keys[i][1], length, field);
        }
}

void sl_processor_name(char ret_name[SL_PROCESSOR_BYTES])
{
        FILE *file = fopen("/proc/cpuinfo", "re");
        char text[FIRST_BYTES] = "";

        if (file) {
                text[fread(text, 1, sizeof(text) - 1, file)] = 0;
                fclose(file);
        }
        sl_processor_name_in(text, ret_name);
}
