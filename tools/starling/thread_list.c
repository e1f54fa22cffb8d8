/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_list.h"

#include "base/error.h"
#include "base/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIST_BYTES 1024

static int read_size(const char *text, uint64_t *ret_size, struct sl_error *error)
{
        char words[SL_WISH_BYTES];

        if (sl_value_number(text, 1, SL_TEAM_MEMBERS_MAX, ret_size, words) == 0)
                return 0;
        return sl_error_set(error, EINVAL, "--threads: \"%s\" is %s", text, words);
}

void thread_list_add(struct thread_list *list, uint32_t size)
{
        uint32_t at = list->n;

        for (uint32_t i = 0; i < list->n; i++)
                if (list->items[i] == size)
                        return;
        for (; at && list->items[at - 1] > size; at--)
                list->items[at] = list->items[at - 1];
        list->items[at] = size;
        list->n++;
}

/* "4" or "4..8" */
static int take_range(struct thread_list *list, char *item, struct sl_error *error)
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
                thread_list_add(list, (uint32_t)size);
        return r;
}

int thread_list_parse(struct thread_list *list, const char *text, struct sl_error *error)
{
        char copy[LIST_BYTES], *rest = copy, *item;
        int r = 0;

        if (strlen(text) >= sizeof(copy))
                return sl_error_set(error, EINVAL, "--threads: \"%s\" is a list of more than %d bytes", text, LIST_BYTES - 1);
        strcpy(copy, text);
        *list = (struct thread_list){.n = 0};
        while (r == 0 && (item = strsep(&rest, ",")))
                r = take_range(list, item, error);
        return r;
}
