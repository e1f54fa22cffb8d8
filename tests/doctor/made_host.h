/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host made of files, with which all is well: eight processors without siblings, of which the first is isolated, Linux 6.12. A
 * test changes one thing of it and asks what the doctor says.
 */
#pragma once

#include "config.h"
#include "doctor.h"
#include "folder.h"
#include "probes.h"
#include "target.h"

struct made_host {
        struct folder folder;
        struct sl_probes probes; /* as the system would answer */
        struct sl_config *config;
        bool configured;
};

void made_host_init(struct made_host *host);
void made_host_deinit(struct made_host *host);

/* Writes a file; @text NULL: it is not there. */
void made_host_write(struct made_host *host, const char *path, const char *text);

/* What a file holds, the caller's to free; NULL: it is not there. */
char *made_host_read(struct made_host *host, const char *path);

/* What one check finds; NULL: all, and the last whose verdict is the worst. */
struct sl_finding made_host_ask(struct made_host *host, const char *check);

/* Ends the test if the check says something else; @found, @change: parts of the texts. */
void made_host_expect(struct made_host *host, const char *check, enum sl_verdict verdict, const char *found, const char *change);
