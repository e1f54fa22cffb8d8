/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_let.h"

#include "base/error.h"
#include "base/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool sl_gpu_let_is_meant(const char *text)
{
        return strncmp(text, "gpu", 3) == 0 && (text[3] == '\0' || text[3] == ':' || text[3] == '/');
}

static int parse_percent(const char *whole, char *text, uint32_t *ret_percent, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];
        size_t length = strlen(text);
        uint64_t percent;

        if (!length || text[length - 1] != '%')
                return sl_error_set(error, EINVAL, "device \"%.40s\": a let is gpu:NUMBER/PERCENT%%, as gpu:0/50%%", whole);
        text[length - 1] = '\0';
        if (sl_value_number(text, 1, 100, &percent, wish) < 0)
                return sl_error_set(error, EINVAL, "device \"%.40s\": its percentage \"%.20s\" is %s", whole, text, wish);
        *ret_percent = (uint32_t)percent;
        return 0;
}

int sl_gpu_let_parse(const char *text, struct sl_gpu_let *ret_let, struct sl_error *error)
{
        struct sl_gpu_let let = {.percent = 100};
        char copy[SL_GPU_LET_NAME_BYTES], wish[SL_WISH_BYTES], *number, *percent = copy;
        uint64_t gpu;

        if (strncmp(text, "gpu:", 4) != 0 || strlen(text) >= sizeof(copy))
                return sl_error_set(error, EINVAL, "device \"%.40s\": not gpu:NUMBER or gpu:NUMBER/PERCENT%%", text);
        strcpy(copy, text + 4);
        number = strsep(&percent, "/");
        if (sl_value_number(number, 0, SL_GPUS_MAX - 1, &gpu, wish) < 0)
                return sl_error_set(error, EINVAL, "device \"%.40s\": its number \"%.20s\" is %s", text, number, wish);
        let.gpu = (uint32_t)gpu;
        if (percent && parse_percent(text, percent, &let.percent, error) < 0)
                return -EINVAL;
        snprintf(let.name, sizeof(let.name), let.percent < 100 ? "gpu:%u/%u%%" : "gpu:%u", let.gpu, let.percent);
        *ret_let = let;
        return 0;
}
