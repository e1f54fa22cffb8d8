/* SPDX-License-Identifier: Apache-2.0 */
#include "requested.h"

#include "account.h"
#include "askers.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/share.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"
#include "shapes.h"

#include <errno.h>

/* So many names as requests may be parked for (../../dispatch/route.c), by the same shares. */
static int check_share(const struct sl_registry *r, const struct sl_served *served, uint32_t uid, struct sl_error *error)
{
        uint32_t taken = 0, held = 0;

        for (uint32_t i = 0; i < r->n_awake; i++) {
                const struct sl_want *want = &sl_awake_at(r, i)->want;

                taken += want->request.is_asked;
                held += want->request.is_asked && want->request.uid == uid;
        }
        return sl_share_grants(SL_SHAPES_MAX, taken, held)
                       ? 0
                       : sl_error_set(error, EDQUOT,
                                 "model \"%s\" is not loaded: user %u waits for %u loads already, which is its share of %u",
                                 served->name, uid, held, SL_SHAPES_MAX);
}

/* A query goes to another variant rather than wait for its user's next load of this minute. */
static int check_rate(const struct sl_registry *r, const struct sl_served *served, uint32_t uid, struct sl_error *error)
{
        const struct sl_account *account = sl_account_find(r->options.accounts, uid);
        uint64_t due_ns = account ? account->compile_due_ns : 0;

        if (!served->want.spec->spec.plan_first || served->standby_want || !account ||
                sl_share_rate(&due_ns, r->options.runtime->uid_shapes, sl_clock_ns()))
                return 0;
        return sl_error_set(error, EDQUOT,
                "variant \"%s\" is not loaded: user %u has had %u loads in this minute, which is the limit (limits.uid.shapes)",
                served->name, uid, r->options.runtime->uid_shapes);
}

int sl_requested_ask(struct sl_registry *r, struct sl_served *served, uint32_t uid, struct sl_error *error)
{
        struct sl_want *want = &served->want;

        if (sl_served_state(served) == SL_SERVED_FAILED)
                return sl_error_set(error, EIO, "model \"%s\" cannot be served: %s", served->name, served->why);
        if (want->request.is_asked)
                return 0;
        int result = uid == SL_ASKED_BY_NOBODY ? 0 : check_share(r, served, uid, error);
        if (result == 0 && uid != SL_ASKED_BY_NOBODY)
                result = check_rate(r, served, uid, error);
        if (result < 0)
                return result;
        sl_names_wake(r, served);
        want->request.is_asked = true;
        want->request.uid = uid;
        want->request.due_ns = sl_clock_ns() + r->options.runtime->load_wait_ns;
        served->why[0] = 0;
        sl_news_publish(r, served);
        return 0;
}

void sl_requested_end(struct sl_served *served)
{
        served->want.request.is_asked = false;
}

void sl_requested_refuse(struct sl_registry *r, struct sl_served *served, int status, const char *why)
{
        struct sl_command command = {.kind = SL_COMMAND_SHAPE_FAILED, .index = served->index, .status = status};

        sl_requested_end(served);
        sl_error_fit(why, command.why, sizeof(command.why));
        if (served->rests)
                sl_dispatcher_command(r->options.dispatcher, &command);
        sl_error_fit(why, served->why, sizeof(served->why));
        sl_news_publish(r, served);
        sl_askers_answer(r, served, false, status, why);
}
