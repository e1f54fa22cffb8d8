/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page, made of page/ when this is built (page/embed.cmake). Constants.
 */
#pragma once

#include <stddef.h>

extern const unsigned char page_html[];
extern const size_t page_html_bytes;

/* Content-Security-Policy: its own style and script, by their hashes, and data from where it came from. */
extern const char page_policy[];
