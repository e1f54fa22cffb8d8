/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_figures.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOPPER                                                                                                                     \
        .capability = 900, .driver_version = 13000, .cuda_version = 13000, .n_processors = 132, .block_registers = 65536,          \
        .processor_registers = 65536, .block_shared_bytes = 49152, .block_shared_bytes_max = 232448, .block_reserved_bytes = 1024, \
        .block_threads = 1024, .processor_threads = 2048, .processor_blocks = 32, .warp_threads = 32, .clock_khz = 1980000,        \
        .grid = {2147483647, 65535, 65535}, .block = {1024, 1024, 64}

const struct sl_cuda_figures sl_cuda_figures_h100 = {
        HOPPER, .memory_bytes = 80ll << 30, .memory_clock_khz = 2619000, .cache_bytes = 50 << 20, .name = "NVIDIA H100 80GB HBM3"};

const struct sl_cuda_figures sl_cuda_figures_h200 = {
        HOPPER, .memory_bytes = 141ll << 30, .memory_clock_khz = 3201000, .cache_bytes = 60 << 20, .name = "NVIDIA H200"};

static int print_list(const char *name, const int64_t values[3], char *text, size_t room)
{
        return snprintf(text, room, ",\"%s\":[%" PRId64 ",%" PRId64 ",%" PRId64 "]", name, values[0], values[1], values[2]);
}

int sl_cuda_figures_print(const struct sl_cuda_figures *figures, char ret_text[SL_CUDA_FIGURES_TEXT_BYTES])
{
        char *at = ret_text;
        const char *end = ret_text + SL_CUDA_FIGURES_TEXT_BYTES;

        for (const char *c = figures->name; *c; c++)
                if (*c == '"' || *c == '\\' || !isprint((unsigned char)*c))
                        return -EINVAL;
        /* The numbers have at most 20 digits each, so that all of it fits. */
        at += snprintf(at, (size_t)(end - at), "{\"cudaDeviceId\":0,\"smVersion\":%" PRId64, figures->capability);
#define X(field, name) at += snprintf(at, (size_t)(end - at), ",\"" #name "\":%" PRId64, figures->field);
        SL_CUDA_FIGURES(X)
#undef X
        at += print_list("maxGridSize", figures->grid, at, (size_t)(end - at));
        at += print_list("maxBlockSize", figures->block, at, (size_t)(end - at));
        snprintf(at, (size_t)(end - at), ",\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"deviceName\":\"%s\"}",
                figures->name);
        return 0;
}

/* What stands behind the name in the text; NULL: it has no such name. */
static const char *find_value(const char *text, const char *name)
{
        char quoted[64];
        const char *at;

        snprintf(quoted, sizeof(quoted), "\"%s\":", name);
        at = strstr(text, quoted);
        if (!at)
                return NULL;
        at += strlen(quoted);
        return at + strspn(at, " \t\n");
}

static bool read_number(const char **at, int64_t *ret_value)
{
        char *end;

        if (!isdigit((unsigned char)**at))
                return false;
        errno = 0;
        *ret_value = strtoll(*at, &end, 10);
        *at = end;
        return !errno;
}

static bool parse_number(const char *text, const char *name, int64_t *ret_value)
{
        const char *at = find_value(text, name);

        return at && read_number(&at, ret_value);
}

static bool parse_list(const char *text, const char *name, int64_t ret_values[3])
{
        const char *at = find_value(text, name);

        for (uint32_t i = 0; i < 3 && at; i++) {
                if (*at++ != (i ? ',' : '['))
                        return false;
                at += strspn(at, " \t\n");
                if (!read_number(&at, &ret_values[i]))
                        return false;
                at += strspn(at, " \t\n");
        }
        return at && *at == ']';
}

static bool parse_name(const char *text, char *ret_name, size_t room)
{
        const char *at = find_value(text, "deviceName");
        size_t length = at && *at == '"' ? strcspn(at + 1, "\"\\") : 0;

        if (!length || length >= room || at[1 + length] != '"')
                return false;
        memcpy(ret_name, at + 1, length);
        return true;
}

bool sl_cuda_figures_parse(const char *text, struct sl_cuda_figures *ret_figures)
{
        char again[SL_CUDA_FIGURES_TEXT_BYTES];
        struct sl_cuda_figures figures = {0};
        bool read = true;

        if (!strcmp(text, "h100") || !strcmp(text, "h200")) {
                *ret_figures = text[1] == '1' ? sl_cuda_figures_h100 : sl_cuda_figures_h200;
                return true;
        }
#define X(field, name) read = read && parse_number(text, #name, &figures.field);
        SL_CUDA_FIGURES(X)
#undef X
        read = read && parse_list(text, "maxGridSize", figures.grid) && parse_list(text, "maxBlockSize", figures.block) &&
               parse_name(text, figures.name, sizeof(figures.name)) && sl_cuda_figures_print(&figures, again) == 0;
        if (read)
                *ret_figures = figures;
        return read;
}

bool sl_cuda_figures_are_sound(const struct sl_cuda_figures *figures)
{
        char text[SL_CUDA_FIGURES_TEXT_BYTES];
        struct sl_cuda_figures read;

        return memchr(figures->name, 0, sizeof(figures->name)) && figures->capability > 0 && figures->n_processors > 0 &&
               sl_cuda_figures_print(figures, text) == 0 && sl_cuda_figures_parse(text, &read) &&
               !memcmp(&read, figures, sizeof(read));
}
