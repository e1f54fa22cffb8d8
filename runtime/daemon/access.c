/* SPDX-License-Identifier: Apache-2.0 */
#include "access.h"
#include "base/value.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t), "one list code for both");

static int append(uint32_t **ids, uint32_t *n, uint32_t id)
{
        uint32_t *grown = reallocarray(*ids, *n + 1ul, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        grown[(*n)++] = id;
        *ids = grown;
        return 0;
}

static int add_user(struct sl_people *people, const char *text, char *ret_wish)
{
        uint64_t number;

        if (sl_value_number(text, 0, UINT32_MAX - 1, &number, ret_wish) < 0) {
                struct passwd *user = getpwnam(text);

                if (!user) {
                        snprintf(ret_wish, SL_WISH_BYTES, "no user of this system");
                        return -EINVAL;
                }
                number = user->pw_uid;
        }
        return append(&people->uids, &people->n_uids, (uint32_t)number);
}

static int add_group(struct sl_people *people, const char *text, char *ret_wish)
{
        uint64_t number;

        if (sl_value_number(text, 0, UINT32_MAX - 1, &number, ret_wish) < 0) {
                struct group *group = getgrnam(text);

                if (!group) {
                        snprintf(ret_wish, SL_WISH_BYTES, "no group of this system");
                        return -EINVAL;
                }
                number = group->gr_gid;
        }
        return append(&people->gids, &people->n_gids, (uint32_t)number);
}

int sl_people_add(struct sl_people *people, const char *text, char *ret_wish)
{
        if (strcmp(text, "*") == 0) {
                people->everybody = true;
                return 0;
        }
        return text[0] == '@' ? add_group(people, text + 1, ret_wish) : add_user(people, text, ret_wish);
}

void sl_people_deinit(struct sl_people *people)
{
        free(people->uids);
        free(people->gids);
        *people = (struct sl_people){.n_uids = 0};
}
