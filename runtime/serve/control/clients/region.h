/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena memory of a session. Control thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_session;
struct sl_sessions;

/*
 * New memory for the arena, which the client touches: its pages are charged to whoever does so first. Return: its index
 * and a fd for the client; -EINVAL, -EDQUOT, -E2BIG, -ENOMEM (also beyond memory_max), -EMFILE.
 */
int sl_region_create(struct sl_sessions *sessions, struct sl_session *session, uint64_t bytes, int *ret_fd, struct sl_error *error);

/* May this region be released? Return: 0; -ENOENT there is none of that index. */
int sl_region_check(const struct sl_session *session, uint32_t index, struct sl_error *error);

/* The dispatcher has released it: it is unmapped and emptied, and no longer counted, so that its index is free. */
void sl_region_drop(struct sl_sessions *sessions, struct sl_session *session, uint32_t index);
/* Memory that the client had under an earlier runtime; the fd stays the caller's. Return: its index; also -EBADMSG. */
int sl_region_adopt(struct sl_sessions *sessions, struct sl_session *session, int fd, struct sl_error *error);
