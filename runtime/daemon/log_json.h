/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of the log as one JSON object: "time", "level" and "event" first, then the fields under their keys in their order. Pure;
 * any thread.
 *
 * A number is a number, all else a string. The object is valid JSON and valid UTF-8 whatever the fields hold: bytes that are no
 * UTF-8 become U+FFFD. What does not fit is cut inside of its value; further fields are left out.
 *
 * Sources: RFC 8259.
 */
#pragma once

#include <stddef.h>

struct log_json_line {
        const char *time, *level, *event; /* words of the program's own */
        const char *fields;               /* of a struct sl_fields; what is none there is one field "text" */
};

/* Ends with a newline and a NUL. @bytes >= 512. Return: bytes without the NUL. */
size_t log_json_write(const struct log_json_line *line, char *ret_text, size_t bytes);
