/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users that are nobody's: what is tried as one of them happens in a forked child that has become the user, and that says by its
 * exit status how it went.
 */
#pragma once

#include "world.h"

#define RUNTIME_UID  60001u
#define CLIENT_UID   60002u
#define OTHER_UID    60003u
#define STRANGER_UID 60004u

/* What a child found; the texts of its failures go to stderr. */
enum { HELD = 0, CROSSED = 1, BROKEN = 2 };

/* Skips the test, and says so, when this is not root. */
void users_need_root(void);

/* In a child: it is this user from here on, and ends with its parent. Return: 0, -errno. */
int users_become(uid_t uid);

/* Return: what @attempt returned as @uid. */
int users_try(uid_t uid, int (*attempt)(const struct world *world), const struct world *world);

/* A process that goes on as @uid until it is killed, or @act returns; returns when it has called users_ready(). */
pid_t users_start(uid_t uid, int (*act)(const struct world *world), const struct world *world);
void users_ready(void);

/* Kills it and waits for its end. */
void users_end(pid_t pid);

/* Says what went wrong. Return: CROSSED. */
int crossed(const char *format, ...) __attribute__((format(printf, 1, 2)));
