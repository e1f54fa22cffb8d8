/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a host keeps a runtime from its work, and what could be better: each check looks at one thing, says what it has found,
 * the setting or command that changes it, and what that would gain. Nothing of the host is changed. Threads: one at a time.
 */
#pragma once

#include "finding.h"

#include <stddef.h>

struct sl_config;
struct sl_probes;

struct sl_doctor_options {
        const char *root;               /* "": this host; else a folder that stands for the root of its file system */
        const struct sl_probes *probes; /* for what files do not tell */
        const struct sl_config *config;
        bool configured;  /* it is somebody's, not the default */
        const bool *only; /* [sl_doctor_checks()]; NULL: all */
};

struct sl_check_description {
        const char *name, *text; /* "huge-pages", "whether ..." */
};

uint32_t sl_doctor_checks(void);
struct sl_check_description sl_doctor_check(uint32_t i);

/* The number of the check with this name, of so many bytes; -1: there is none. */
int sl_doctor_find(const char *name, size_t bytes);

/* "ok", "cannot tell", "could be better", "wrong"; as one word: "ok", "unknown", "better", "wrong". */
const char *sl_verdict_text(enum sl_verdict verdict);
const char *sl_verdict_word(enum sl_verdict verdict);

typedef void sl_finding_fn(void *context, const struct sl_finding *finding);

/* Calls @report for each check as it is done. Return: the worst verdict. */
enum sl_verdict sl_doctor_run(const struct sl_doctor_options *options, sl_finding_fn *report, void *context);
