/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody may have meant by a word that there is not. Pure; any thread.
 */
#pragma once

#include <stddef.h>

/* The name at @i; NULL after the last. */
typedef const char *sl_nearest_name(size_t i);

/*
 * The name that differs least, in at most a third of its characters, a short one in one: letters changed, left out, put in, or two
 * exchanged; large and small ones are the same. A name that begins with the word, or the word with it, is near, too. NULL: none.
 *
 * Sources: F. J. Damerau, "A technique for computer detection and correction of spelling errors", CACM, 1964.
 */
const char *sl_nearest(const char *word, sl_nearest_name *name_at);
