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
                return sl_error_set(error, EINVAL, "device \"%s\": a let is gpu:NUMBER/PERCENT%%, as gpu:0/50%%", whole);
        text[length - 1] = '\0';
        if (sl_value_number(text, 1, 100, &percent, wish) < 0)
                return sl_error_set(error, EINVAL, "device \"%s\": its percentage \"%s\" is %s", whole, text, wish);
        *ret_percent = (uint32_t)percent;
        return 0;
}

struct sl_gpu_let sl_gpu_let_of(uint32_t gpu, uint32_t percent)
{
        struct sl_gpu_let let = {.gpu = gpu, .percent = percent};
        char number[16] = "*";

        if (gpu != SL_GPU_EACH)
                snprintf(number, sizeof(number), "%u", gpu);
        snprintf(let.name, sizeof(let.name), percent < 100 ? "gpu:%s/%u%%" : "gpu:%s", number, percent);
        return let;
}

static int parse(const char *text, bool may_be_each, struct sl_gpu_let *ret_let, struct sl_error *error)
{
        char copy[SL_GPU_LET_NAME_BYTES], wish[SL_WISH_BYTES], *number, *percents = copy;
        uint32_t percent = 100;
        uint64_t gpu = SL_GPU_EACH;

        if (strncmp(text, "gpu:", 4) != 0 || strlen(text) >= sizeof(copy))
                return sl_error_set(error, EINVAL, "device \"%s\": not gpu:NUMBER or gpu:NUMBER/PERCENT%%%s", text,
                        may_be_each ? ", or gpu:* for all" : "");
        strcpy(copy, text + 4);
        number = strsep(&percents, "/");
        if (!(may_be_each && strcmp(number, "*") == 0) && sl_value_number(number, 0, SL_GPUS_MAX - 1, &gpu, wish) < 0)
                return sl_error_set(error, EINVAL, "device \"%s\": its number \"%s\" is %s", text, number, wish);
        if (percents && parse_percent(text, percents, &percent, error) < 0)
                return -EINVAL;
        *ret_let = sl_gpu_let_of((uint32_t)gpu, percent);
        return 0;
}

int sl_gpu_let_parse(const char *text, struct sl_gpu_let *ret_let, struct sl_error *error)
{
        return parse(text, false, ret_let, error);
}

int sl_gpu_lets_parse(char *const *texts, uint32_t n, struct sl_gpu_let ret_lets[SL_GPUS_MAX], struct sl_error *error)
{
        if (n < 1 || n > SL_GPUS_MAX)
                return sl_error_set(error, EINVAL, "%u GPUs, a model has 1 to %u", n, SL_GPUS_MAX);
        for (uint32_t i = 0; i < n; i++) {
                int r = parse(texts[i], true, &ret_lets[i], error);

                if (r < 0)
                        return r;
                if (ret_lets[i].gpu == SL_GPU_EACH && n > 1)
                        return sl_error_set(error, EINVAL, "device \"%s\" is all GPUs, and stands by itself", ret_lets[i].name);
                for (uint32_t k = 0; k < i; k++)
                        if (ret_lets[k].gpu == ret_lets[i].gpu)
                                return sl_error_set(error, EINVAL, "gpu:%u is listed twice, as \"%s\" and \"%s\"", ret_lets[i].gpu,
                                        ret_lets[k].name, ret_lets[i].name);
        }
        return 0;
}
