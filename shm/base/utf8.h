/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that anybody can have chosen, for people, JSON and terminals. Pure; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that @at begins with, of @left; 0: it is none. Neither overlong forms nor surrogates are. */
size_t sl_utf8_bytes(const char *at, size_t left);

/* Bytes of @text before the first that is no part of a character, or of a control one (U+0000 to U+001F, U+007F to U+009F). */
size_t sl_utf8_printable(const char *text);

/* The character that @at begins with, of @left bytes; 0: it is none. @ret_bytes: as of sl_utf8_bytes(). */
uint32_t sl_utf8_code(const char *at, size_t left, size_t *ret_bytes);

/* The most bytes up to @bytes, at most strlen(@text), that end between characters. */
size_t sl_utf8_head(const char *text, size_t bytes);

/*
 * @text where it has less than @bytes, else its beginning, "..." and its end, cut between characters. @ret_text may be @text.
 * Returns @ret_text.
 */
const char *sl_utf8_fit(const char *text, char *ret_text, size_t bytes);

/*
 * @text with '?' for each byte that is not printable as above. It is cut between characters when @bytes do not suffice. @ret_text
 * may be @text. Returns @ret_text.
 */
const char *sl_utf8_clean(const char *text, char *ret_text, size_t bytes);
