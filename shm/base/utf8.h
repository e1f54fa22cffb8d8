/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that anybody can have chosen, for people, JSON and terminals. Pure; any thread.
 */
#pragma once

#include <stddef.h>

/* Bytes of the character that @at begins with, of @left; 0: it is none. Neither overlong forms nor surrogates are. */
size_t sl_utf8_bytes(const char *at, size_t left);

/* Bytes of @text before the first that is no part of a character, or of a control one (U+0000 to U+001F, U+007F to U+009F). */
size_t sl_utf8_printable(const char *text);

/*
 * @text with '?' for each byte that is not printable as above. It is cut between characters when @bytes do not suffice. Returns
 * @ret_text.
 */
const char *sl_utf8_clean(const char *text, char *ret_text, size_t bytes);
