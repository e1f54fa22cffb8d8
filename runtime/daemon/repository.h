/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model repositories: folders in the layout that Triton's users know, turned into what the runtime serves.
 *
 *     REPOSITORY/NAME/VERSION/model.onnx       VERSION: a number from 1
 *     REPOSITORY/NAME/config.yaml              optional, see model_config.h; with members it is an ensemble and has no versions
 *
 * With `task` it is neither: a name that clients open, and that is no model of its own.
 *
 * and what else is plain (onnx_files.h). A version, or a folder NAME without versions, may have a single .onnx file of another
 * name. NAME.onnx in the repository is a model without a configuration, and its version is 1. In the place of a repository may
 * stand such a file, or the folder of one model: folders of versions lie in it, and none of another model. What is not plain is
 * left out with one line that says what there is, and what to move.
 *
 * NAME serves the newest of the versions that its policy picks. When it picks several, NAME:VERSION serves each of them, with
 * workers of its own, so that a new version never shows up under the name of an old one. Hidden entries are ignored; symbolic
 * links are followed, and messages show the path inside the repository. A model that cannot be served does not hide the others: it
 * is reported, and its spec says why (sl_model_spec.refused).
 *
 * Threads: one at a time. A scan is immutable.
 */
#pragma once

#include "model_config.h"
#include "spec.h"
#include "task_spec.h"

#include <stdint.h>

struct sl_error;
struct sl_repository_scan;

struct sl_repository_query {
        const char *const *repositories; /* of two models of one name the first repository's is served */
        uint32_t n_repositories;
        const char *const *models; /* names to serve; n_models 0: all */
        uint32_t n_models;
        const struct sl_model_config *defaults;
};

/* Called for each model that is left out, with one line that names the path. */
typedef void (*sl_repository_report_fn)(void *context, const char *text);

/*
 * Return: 0; -ENOENT, -ENOTDIR, -EACCES when a repository cannot be read (the text names it); -ENOENT for a listed model that is
 * nowhere; -ENOMEM.
 */
int sl_repository_scan(const struct sl_repository_query *query, sl_repository_report_fn report, void *context,
        struct sl_repository_scan **ret_scan, struct sl_error *error);

/* For each model whose configuration has a key that does nothing, one line that names both. */
void sl_repository_tell_unused(const struct sl_repository_scan *scan, sl_repository_report_fn tell, void *context);

/* All of one repository, as it is without a runtime's configuration; the last complaint is in @complaint. */
int sl_repository_scan_plain(
        const char *repository, struct sl_error *complaint, struct sl_repository_scan **ret_scan, struct sl_error *error);
struct sl_repository_scan *sl_repository_scan_free(struct sl_repository_scan *scan);

/* Sorted: models by name and version, then ensembles by name. Owned by the scan; their workers may be changed. */
struct sl_model_spec *sl_repository_specs(const struct sl_repository_scan *scan, uint32_t *ret_n);

/* Sorted by name. Owned by the scan. */
const struct sl_task_spec *sl_repository_tasks(const struct sl_repository_scan *scan, uint32_t *ret_n);

/* NULL: there is none of that name. */
const struct sl_model_spec *sl_repository_find(const struct sl_repository_scan *scan, const char *name);

/* Files and folders that would be models, but no model may be called so: they are reported, and are no specs. */
uint32_t sl_repository_unnamed(const struct sl_repository_scan *scan);

/* Models with a config.pbtxt, as Triton has it, and no config.yaml: they are served as if they had neither. */
uint32_t sl_repository_triton(const struct sl_repository_scan *scan);

/*
 * The versions of @found (ascending) that @policy picks, ascending, into @ret_picked, which has room for all. Return: how many.
 * Pure.
 */
uint32_t sl_versions_pick(const struct sl_version_policy *policy, const int64_t *found, uint32_t n_found, int64_t *ret_picked);
