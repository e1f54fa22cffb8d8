/* SPDX-License-Identifier: Apache-2.0 */
#include "askers.h"

#include "answers.h"
#include "base/error.h"
#include "registry_state.h"

#include <errno.h>

int sl_askers_add(struct sl_served *served, uint64_t session, bool farewell, struct sl_error *error)
{
        struct sl_askers *askers = &served->want.askers;

        if (!session)
                return 0;
        if (askers->n == SL_ASKERS_MAX)
                return sl_error_set(
                        error, EBUSY, "\"%s\": %u wait for it already, which is the limit", served->name, SL_ASKERS_MAX);
        askers->list[askers->n++] = (struct sl_asker){session, farewell};
        return 0;
}

void sl_askers_answer(struct sl_registry *r, struct sl_served *served, bool farewell, int status, const char *text)
{
        struct sl_askers *askers = &served->want.askers;
        uint32_t left = 0;

        for (uint32_t i = 0; i < askers->n; i++) {
                if (askers->list[i].farewell == farewell)
                        sl_answers_add(r, askers->list[i].session, status, text);
                else
                        askers->list[left++] = askers->list[i];
        }
        askers->n = left;
}

bool sl_askers_wait(const struct sl_served *served, bool farewell)
{
        for (uint32_t i = 0; i < served->want.askers.n; i++)
                if (served->want.askers.list[i].farewell == farewell)
                        return true;
        return false;
}
