/* SPDX-License-Identifier: Apache-2.0 */
#include "name_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sl_name_list_new(const char *const *names, uint32_t n, struct sl_name_list **ret_list)
{
        size_t bytes = sizeof(struct sl_name_list) + n * sizeof(char *);
        struct sl_name_list *list;
        char *text;

        for (uint32_t i = 0; i < n; i++)
                bytes += strlen(names[i]) + 1;
        list = malloc(bytes);
        if (!list)
                return -ENOMEM;
        list->holders = 1;
        list->n = n;
        text = (char *)(list->names + n);
        for (uint32_t i = 0; i < n; i++) {
                list->names[i] = strcpy(text, names[i]);
                text += strlen(text) + 1;
        }
        *ret_list = list;
        return 0;
}

struct sl_name_list *sl_name_list_hold(struct sl_name_list *list)
{
        if (list)
                list->holders++;
        return list;
}

struct sl_name_list *sl_name_list_release(struct sl_name_list *list)
{
        if (list && --list->holders == 0)
                free(list);
        return NULL;
}
