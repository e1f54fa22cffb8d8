/* SPDX-License-Identifier: Apache-2.0 */
#include "setting.h"
#include "base/value.h"
#include "yaml_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What is not 0 stays so. */
static int convert_share(const char *text, uint64_t *ret_value, char *ret_wish)
{
        double share;
        int r = sl_value_real(text, 0, 1, &share, ret_wish);

        if (r == 0)
                *ret_value = share > 0 && share * UINT32_MAX < 1 ? 1 : (uint64_t)(share * UINT32_MAX);
        return r;
}

static int convert(const struct sl_setting *setting, const char *text, uint64_t *ret_value, char *ret_wish)
{
        switch (setting->kind) {
        case SL_SETTING_NUMBER:
                if (setting->n_names && !strcmp(text, setting->names[0]))
                        return 0; /* the value is 0 */
                return sl_value_number(text, setting->min, setting->max, ret_value, ret_wish);
        case SL_SETTING_BYTES:
                return sl_value_bytes(text, setting->min, setting->max, ret_value, ret_wish);
        case SL_SETTING_CHOICE:
                return sl_value_choice(text, setting->names, setting->n_names, ret_value, ret_wish);
        case SL_SETTING_SHARE:
                return convert_share(text, ret_value, ret_wish);
        }
        return -EINVAL;
}

static void store(const struct sl_setting *setting, uint64_t value, void *values)
{
        uint32_t narrow = (uint32_t)value;
        const void *from = setting->value_bytes == 4 ? (const void *)&narrow : (const void *)&value;

        memcpy((char *)values + setting->value_offset, from, setting->value_bytes);
}

int sl_settings_apply(const struct sl_yaml_file *file, const char *prefix, const struct sl_setting *settings, size_t n,
        const void *texts, void *values, struct sl_error *error)
{
        for (size_t i = 0; i < n; i++) {
                const char *text = *(char *const *)((const char *)texts + settings[i].text_offset);
                char wish[SL_WISH_BYTES], path[128];
                uint64_t value = 0;

                if (!text)
                        continue;
                if (convert(&settings[i], text, &value, wish) < 0) {
                        snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", settings[i].key);
                        return sl_yaml_file_error(file, error, path, "\"%s\" is %s", text, wish);
                }
                store(&settings[i], value, values);
        }
        return 0;
}
