/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names under which an exporter is asked, so that no page of another site reads it through a name of its own that leads here
 * (DNS rebinding): a browser then says that name. Addresses, localhost and this host's own name are no other site's. One thread.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_error;

#define HOST_NAMES_MAX 16u

struct host_names {
        uint32_t n;
        const char *items[HOST_NAMES_MAX]; /* the caller's */
        char own[HOST_NAME_MAX + 1];       /* as the kernel has it; "": none */
};

/* None but those that are always there. */
void host_names_init(struct host_names *names);

/* @name: without a port. Return: 0; -EINVAL with text. */
int host_names_add(struct host_names *names, const char *name, struct sl_error *error);

/* @header: of Host, with or without a port; NULL: the request has none, as no browser's. */
bool host_names_have(const struct host_names *names, const char *header);
