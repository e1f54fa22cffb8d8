/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is watched, as text: Prometheus' format 0.0.4 or OpenMetrics 1.0.0. One thread.
 *
 * Sources: "Exposition formats", prometheus.io/docs; "OpenMetrics, a cloud-native, highly scalable metrics protocol", R. Hartmann
 * and others, draft-richih-opsawg-openmetrics-00.
 */
#pragma once

#include "text.h"
#include "watch.h"

enum exposition_format { EXPOSITION_PROMETHEUS, EXPOSITION_OPENMETRICS };

const char *exposition_content_type(enum exposition_format format);

/* Of @n refreshed runtimes; @out->failed says that it does not fit. */
void exposition_write(struct text *out, const struct watch *watches, uint32_t n, enum exposition_format format);
