/* SPDX-License-Identifier: Apache-2.0 */
/* What a scan of repositories has found: repository.c looks for it, repository_relations.c relates it. One thread. */
#pragma once

#include "folder_names.h"
#include "layout.h"
#include "repository.h"

#include <stdbool.h>

/* One served name with what its spec points to. */
struct sl_scanned {
        struct sl_scanned *next_named; /* of the same bucket */
        struct sl_model_spec *spec;    /* its own while it is scanned, then the scan's copy */
        bool is_copied;
        char name[SL_MODEL_NAME_BYTES];
        char *path;
        char *cause;                          /* why it is not served; NULL: it is */
        const char *repository;               /* of the query */
        const struct sl_model_config *config; /* of the scan */
        const char *members[SL_MEMBERS_MAX];
};

/* A configuration that several names have, one after the other. */
struct sl_scanned_config {
        struct sl_scanned_config *next;
        struct sl_model_config config;
};

#define SL_SCAN_BUCKETS 8192u

struct sl_repository_scan {
        struct sl_scanned **served;
        struct sl_scanned *by_name[SL_SCAN_BUCKETS]; /* the first of each name is found */
        struct sl_model_spec *specs;                 /* in order, but of tasks */
        struct sl_task_spec *tasks;
        struct sl_scanned_config *configs;
        uint32_t n, n_specs, n_tasks;
        uint32_t n_unnamed;                      /* models whose file or folder has no name that one can be served under */
        uint32_t n_triton;                       /* folders with a configuration of Triton's and none of ours */
        const struct sl_repository_query *query; /* while scanning */
        const char *repository;                  /* that is scanned, of the query */
        struct sl_folder_names beside;           /* what lies there */
        sl_repository_report_fn report;
        void *context;
};

/* To who asked for the scan. */
void sl_scan_report(const struct sl_repository_scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* NULL: there is none of that name, version and all. */
struct sl_scanned *sl_scan_find(const struct sl_repository_scan *scan, const char *name);

bool sl_scan_wants(const struct sl_repository_query *query, const char *name);

/* @path NULL: an ensemble, or a task. @shared: the file lies among others (`beside`). Return: 0, -ENOMEM. */
int sl_scan_append(struct sl_repository_scan *scan, const char *name, const char *path, bool shared, int64_t version,
        const struct sl_model_config *config);

/* The name is known, and so is the cause why it is not served, which is reported. Return: 0, -ENOMEM. */
int sl_scan_leave_out(struct sl_repository_scan *scan, const char *name, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* NULL is fine. Returns NULL. */
struct sl_scanned *sl_scanned_free(struct sl_scanned *served);

/* It is listed, and not served. Return: 0, -ENOMEM. */
int sl_scan_refuse(struct sl_scanned *served, const char *cause);

/*
 * Ensembles point to their members, and models know with whom they share workers by name. What names a stranger is refused.
 * Return: 0, -ENOMEM.
 */
int sl_scan_relate(const struct sl_repository_scan *scan);
