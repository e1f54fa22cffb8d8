/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_list.h"

#include "base/error.h"
#include "base/value.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LIST_BYTES 1024

static int read_size(const char *text, uint64_t *ret_size, struct sl_error *error)
{
        char words[SL_WISH_BYTES];

        if (sl_value_number(text, 1, SL_TEAM_MEMBERS_MAX, ret_size, words) == 0)
                return 0;
        return sl_error_set(error, EINVAL, "--threads: \"%.40s\" is %s", text, words);
}

/* "4" or "4..8"; @wanted[i]: teams of i + 1. */
static int take_range(bool *wanted, char *item, struct sl_error *error)
{
        char *dots = strstr(item, "..");
        uint64_t first, last;
        int r;

        if (dots)
                *dots = 0;
        r = read_size(item, &first, error);
        last = first;
        if (r == 0 && dots)
                r = read_size(dots + 2, &last, error);
        if (r == 0 && last < first)
                r = sl_error_set(error, EINVAL, "--threads: \"%s..%s\" goes down", item, dots + 2);
        for (uint64_t size = first; r == 0 && size <= last; size++)
                wanted[size - 1] = true;
        return r;
}

int thread_list_parse(struct thread_list *list, const char *text, struct sl_error *error)
{
        bool wanted[SL_TEAM_MEMBERS_MAX] = {false};
        char copy[LIST_BYTES], *rest = copy, *item;
        int r = 0;

        if (strlen(text) >= sizeof(copy))
                return sl_error_set(error, EINVAL, "--threads: \"%.40s...\" is a list of more than %d bytes", text, LIST_BYTES - 1);
        strcpy(copy, text);
        while (r == 0 && (item = strsep(&rest, ",")))
                r = take_range(wanted, item, error);
        *list = (struct thread_list){.n = 0};
        for (uint32_t i = 0; r == 0 && i < SL_TEAM_MEMBERS_MAX; i++)
                if (wanted[i])
                        list->items[list->n++] = i + 1;
        return r;
}
