/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which format a scraper asks for. Pure; any thread.
 */
#pragma once

#include "exposition.h"

/*
 * Of the field Accept of a request; NULL: it has none. OpenMetrics is chosen when it is named, and no less wanted than text. A
 * field that makes no sense asks for nothing.
 *
 * Sources: RFC 9110, section 12.5.1.
 */
enum exposition_format accept_format(const char *accept);
