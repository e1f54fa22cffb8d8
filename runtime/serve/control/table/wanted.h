/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wanted of one name, and who waits for it: the record. want.c and askers.c (../want) alone write it. Control thread only.
 */
#pragma once

#include "worker_set.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_own_spec;

#define SL_ASKERS_MAX 64u /* of one name */

struct sl_askers {
        uint32_t n;
        struct sl_asker {
                uint64_t session;
                bool farewell; /* it waits for the end of the name */
        } list[SL_ASKERS_MAX];
};

#define SL_WANT_ORIGINS(X)                                                                                                         \
        X(REPOSITORY, "repository")       /* it was read, at the start or by SIGHUP */                                             \
        X(ADMINISTRATOR, "administrator") /* LOAD, RELOAD, UNLOAD */                                                               \
        X(REQUEST, "request")             /* for sizes of open dimensions */

enum sl_want_origin {
#define X(id, name) SL_WANT_##id,
        SL_WANT_ORIGINS(X)
#undef X
};

struct sl_want {
        uint64_t number;          /* grows with each other want; 0: the name is to go */
        struct sl_own_spec *spec; /* held; of a name that is to go what it was */
        enum sl_want_origin origin;
        bool anew; /* by a model that is loaded after that, though others of its file serve: a reload */
        uint64_t since_ns;
        const char *why; /* of one that is to go; a literal */
        struct sl_worker_set workers;
        uint64_t workers_number; /* grows with each other set */
        uint64_t group;          /* with which they change together (applied.h); 0: alone */
        struct sl_askers askers; /* who wait for that */
        struct {
                bool is_asked;
                uint32_t uid;    /* who asked first; SL_ASKED_BY_NOBODY: an administrator */
                uint64_t due_ns; /* until then those who have asked wait at most */
        } request;               /* for what is loaded on request (want/requested.h) */
};
