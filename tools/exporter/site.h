/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is at which address, without HTTP around it. One thread.
 */
#pragma once

#include "text.h"
#include "watch.h"

#define SITE_BYTES_MAX (64ul << 20) /* of one answer */

struct site {
        struct watch *watches; /* the caller's */
        uint32_t n_watches;
};

struct site_answer {
        unsigned status; /* of HTTP */
        const char *content_type;
        const char *allow; /* NULL, or the methods that would do */
        struct text body;  /* the caller's: text_deinit() */
};

/* @accept: of the request; NULL: it says nothing. Changes of the runtimes that were met are said on stderr. */
void site_answer(struct site *site, const char *method, const char *path, const char *accept, struct site_answer *ret_answer);
