/* SPDX-License-Identifier: Apache-2.0 */
#include "reason.h"

#include "base/dtype.h"
#include "layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(struct sl_reason_line) == sizeof(struct sl_output), "a reason lies in the place of an output shape");

static struct sl_reason_line *line_of(const struct sl_queue_map *map, uint16_t tag)
{
        return (struct sl_reason_line *)&map->outputs[(size_t)tag * map->tensors];
}

/* The places of a tag lie one behind the other, and so does the text in them. */
static size_t text_room(const struct sl_queue_map *map)
{
        return map->tensors * sizeof(struct sl_output) - offsetof(struct sl_reason_line, text);
}

void sl_reason_put(const struct sl_queue_map *map, uint16_t tag, const struct sl_reason *reason, const char *text)
{
        uint8_t *places = (uint8_t *)line_of(map, tag);
        struct sl_reason copy = *reason;

        copy.text_bytes = text ? (uint16_t)strnlen(text, text_room(map)) : 0;
        memcpy(places, &copy, sizeof(copy));
        if (text)
                memcpy(places + offsetof(struct sl_reason_line, text), text, copy.text_bytes);
}

/* Words under construction; what does not fit is left out. */
struct words {
        char *text;
        size_t bytes, used;
};

static void add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct words *words, const char *format, ...)
{
        va_list args;
        int n;

        if (words->used >= words->bytes)
                return;
        va_start(args, format);
        n = vsnprintf(words->text + words->used, words->bytes - words->used, format, args);
        va_end(args);
        words->used += n > 0 ? (size_t)n : 0;
}

static void add_time(struct words *words, uint64_t ns)
{
        if (ns < 1000000)
                add(words, "%.1f us", (double)ns / 1e3);
        else
                add(words, "%.1f ms", (double)ns / 1e6);
}

static void add_part(struct words *words, char kind, const struct sl_reason *reason, const char *text)
{
        switch (kind) {
        case 'g':
                add(words, "%" PRIu64, reason->got);
                break;
        case 'l':
                add(words, "%" PRIu64, reason->limit);
                break;
        case 'G':
                add(words, "%s", sl_dtype_name((uint32_t)reason->got));
                break;
        case 'L':
                add(words, "%s", sl_dtype_name((uint32_t)reason->limit));
                break;
        case 'n':
                add_time(words, reason->got);
                break;
        case 'm':
                add_time(words, reason->limit);
                break;
        case 't':
                add(words, "%s %u", reason->tensor & SL_REASON_OUTPUT ? "output" : "input", reason->tensor & ~SL_REASON_OUTPUT);
                break;
        case 'a':
                add(words, "%u", reason->axis);
                break;
        default:
                add(words, "%s", text);
        }
}

static const char *const formats[] = {
#define X(id, words) words,
        SL_REASONS(X)
#undef X
};

void sl_reason_get(const struct sl_queue_map *map, uint16_t tag, struct sl_reason *ret_reason, char *ret_text, size_t bytes)
{
        const struct sl_reason_line *line = line_of(map, tag);
        struct sl_reason reason = line->reason;

        if (reason.code >= SL_REASON_COUNT || reason.text_bytes > text_room(map))
                reason = (struct sl_reason){.code = SL_REASON_NONE};
        if (reason.text_bytes >= bytes)
                reason.text_bytes = (uint16_t)(bytes - 1);
        memcpy(ret_text, (const char *)line + offsetof(struct sl_reason_line, text), reason.text_bytes);
        ret_text[reason.text_bytes] = 0;
        *ret_reason = reason;
}

void sl_reason_words(const struct sl_reason *reason, const char *text, char *ret_words, size_t bytes)
{
        struct words words = {.text = ret_words, .bytes = bytes};

        ret_words[0] = 0;
        for (const char *format = reason->code < SL_REASON_COUNT ? formats[reason->code] : ""; *format; format++) {
                if (*format == '%')
                        add_part(&words, *++format, reason, text);
                else
                        add(&words, "%c", *format);
        }
}
