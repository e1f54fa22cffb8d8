/* SPDX-License-Identifier: Apache-2.0 */
#include "places.h"

#include "base/share.h"
#include "channel.h"
#include "request.h"

#include <errno.h>
#include <stdlib.h>

struct holder {
        uint32_t held;
        uint32_t at;               /* in the list of users, when held is not 0 */
        struct sl_request *newest; /* of those that can be taken back */
};

struct sl_places {
        uint32_t n_users;
        uint32_t *users; /* their numbers */
        struct holder holders[];
};

int sl_places_new(uint32_t users, struct sl_places **ret_places)
{
        struct sl_places *places = calloc(1, sizeof(*places) + users * sizeof(places->holders[0]));

        if (!places)
                return -ENOMEM;
        places->users = calloc(users, sizeof(*places->users));
        if (!places->users) {
                sl_places_free(places);
                return -ENOMEM;
        }
        *ret_places = places;
        return 0;
}

struct sl_places *sl_places_free(struct sl_places *places)
{
        if (places)
                free(places->users);
        free(places);
        return NULL;
}

/* Of the user that is most above @each and has something that can be taken back; NULL. */
static struct sl_request *find_victim(const struct sl_places *places, uint64_t each)
{
        const struct holder *most = NULL;

        for (uint32_t i = 0; i < places->n_users; i++) {
                const struct holder *holder = &places->holders[places->users[i]];

                if (holder->newest && holder->held > each && (!most || holder->held > most->held))
                        most = holder;
        }
        return most ? most->newest : NULL;
}

int sl_places_ask(const struct sl_places *places, uint32_t total, uint32_t taken, uint32_t user, struct sl_request **ret_victim)
{
        uint32_t held = places->holders[user].held, users = places->n_users + (held == 0);
        uint64_t each = sl_share_each(total, users);

        *ret_victim = NULL;
        if (taken < total)
                return 0;
        if (held >= each)
                return users == 1 ? -EBUSY : -EDQUOT;
        *ret_victim = find_victim(places, each);
        return 0;
}

static struct holder *holder_of(struct sl_places *places, const struct sl_request *request)
{
        return &places->holders[request->queue->channel->user->number];
}

void sl_places_enter(struct sl_places *places, struct sl_request *request)
{
        struct holder *holder = holder_of(places, request);

        if (holder->held++ == 0) {
                holder->at = places->n_users;
                places->users[places->n_users++] = request->queue->channel->user->number;
        }
        request->yields = true;
        request->newer = NULL;
        request->older = holder->newest;
        if (holder->newest)
                holder->newest->newer = request;
        holder->newest = request;
}

void sl_places_pin(struct sl_places *places, struct sl_request *request)
{
        if (!request->yields)
                return;
        request->yields = false;
        if (request->newer)
                request->newer->older = request->older;
        else
                holder_of(places, request)->newest = request->older;
        if (request->older)
                request->older->newer = request->newer;
}

static void leave_users(struct sl_places *places, const struct holder *holder)
{
        uint32_t last = places->users[--places->n_users];

        places->users[holder->at] = last;
        places->holders[last].at = holder->at;
}

void sl_places_leave(struct sl_places *places, struct sl_request *request)
{
        struct holder *holder = holder_of(places, request);

        sl_places_pin(places, request);
        if (--holder->held == 0)
                leave_users(places, holder);
}
