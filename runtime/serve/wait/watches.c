/* SPDX-License-Identifier: Apache-2.0 */
#include "watches.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define GENERATION_MASK 0xffffffu

void sl_watches_deinit(struct sl_watches *watches)
{
        free(watches->slots);
        *watches = (struct sl_watches){0};
}

struct sl_watch *sl_watches_find(struct sl_watches *watches, uint64_t token)
{
        for (uint32_t i = 0; i < watches->n; i++) {
                struct sl_watch *watch = &watches->slots[i];

                if ((watch->kind == SL_WATCH_POLL || watch->kind == SL_WATCH_ACCEPT) && watch->token == token)
                        return watch;
        }
        return NULL;
}

static struct sl_watch *free_slot(struct sl_watches *watches)
{
        for (uint32_t i = 0; i < watches->n; i++)
                if (watches->slots[i].kind == SL_WATCH_FREE)
                        return &watches->slots[i];

        struct sl_watch *slots = reallocarray(watches->slots, watches->n + 1ul, sizeof(*slots));
        if (!slots)
                return NULL;
        watches->slots = slots;
        slots[watches->n] = (struct sl_watch){.generation = 0};
        return &slots[watches->n++];
}

int sl_watches_add(struct sl_watches *watches, enum sl_watch_kind kind, int fd, uint64_t token, struct sl_watch **ret_watch)
{
        if (kind != SL_WATCH_POSTBOX && sl_watches_find(watches, token))
                return -EEXIST;
        if (fcntl(fd, F_GETFD) < 0)
                return -EBADF;

        struct sl_watch *watch = free_slot(watches);
        if (!watch)
                return -ENOMEM;
        *watch = (struct sl_watch){.token = token, .fd = fd, .kind = kind, .generation = watch->generation};
        watches->n_unarmed++;
        *ret_watch = watch;
        return 0;
}

void sl_watches_remove(struct sl_watches *watches, struct sl_watch *watch)
{
        if (!watch->armed && !watch->finished)
                watches->n_unarmed--;
        *watch = (struct sl_watch){.generation = (watch->generation + 1) & GENERATION_MASK};
}

uint64_t sl_watches_key(const struct sl_watches *watches, const struct sl_watch *watch)
{
        return (uint64_t)watch->generation << 32 | (uint64_t)(watch - watches->slots);
}

struct sl_watch *sl_watches_of_key(struct sl_watches *watches, uint64_t key)
{
        uint32_t slot = (uint32_t)key;

        if (slot >= watches->n)
                return NULL;
        struct sl_watch *watch = &watches->slots[slot];
        bool current = watch->generation == ((key >> 32) & GENERATION_MASK);
        return current && watch->kind != SL_WATCH_FREE ? watch : NULL;
}

void sl_watches_armed(struct sl_watches *watches, struct sl_watch *watch)
{
        watch->armed = true;
        watch->resume_ns = 0;
        watches->n_unarmed--;
}

void sl_watches_disarmed(struct sl_watches *watches, struct sl_watch *watch, uint64_t resume_ns)
{
        watch->armed = false;
        watch->resume_ns = resume_ns;
        watches->n_unarmed++;
}

void sl_watches_finished(struct sl_watches *watches, struct sl_watch *watch)
{
        if (!watch->armed && !watch->finished)
                watches->n_unarmed--;
        watch->armed = false;
        watch->finished = true;
}

uint64_t sl_watches_resume_ns(const struct sl_watches *watches)
{
        uint64_t earliest = UINT64_MAX;

        for (uint32_t i = 0; watches->n_unarmed && i < watches->n; i++) {
                const struct sl_watch *watch = &watches->slots[i];

                if (watch->kind != SL_WATCH_FREE && !watch->armed && !watch->finished && watch->resume_ns < earliest)
                        earliest = watch->resume_ns;
        }
        return earliest;
}

bool sl_watches_pauses(int error)
{
        return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}
