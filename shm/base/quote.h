/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values in lines of key=value. Pure; any thread.
 */
#pragma once

#include <stddef.h>

/*
 * A value that anybody can have chosen, safe for a line: as it is when it is a plain word, else in double quotes with \" \\ \n \t
 * and \xHH. When @bytes do not suffice it is cut between characters, in quotes and with "..." at its end. Returns @ret_text.
 */
const char *sl_quote(const char *value, char *ret_text, size_t bytes);
