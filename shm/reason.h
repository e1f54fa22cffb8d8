/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request was refused or failed. The dispatcher says it in numbers, one line of response memory that it writes only then;
 * libstarling makes the words. Only what a model itself says of a failure travels as text.
 *
 * It lies in the places of the request's output shapes, which nobody needs then: sl_reason_line in the first of them, more of the
 * text in the others. A completion with SL_COMPLETION_REASON has one.
 */
#pragma once

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

struct sl_queue_map;

/*
 * id, words. In the words %g is got, %l limit, %t the tensor ("input 2"), %a the axis, %G and %L the same numbers as element types,
 * %n and %m the same as times, %s the text.
 */
#define SL_REASONS(X)                                                                                                              \
        X(NONE, "")                                                                                                                \
        X(TEXT, "%s")                                                                                                              \
        X(STOPPING, "the runtime is stopping")                                                                                     \
        X(CANCELLED, "cancelled by its client")                                                                                    \
        X(GENERATION, "the model was unloaded, or replaced by one with other inputs or outputs, after it had been opened")         \
        X(CLIENT_IN_FLIGHT, "%g requests of this client are in flight, limits.client.in_flight is %l")                             \
        X(USER_IN_FLIGHT, "%g requests of this user are in flight, limits.uid.in_flight is %l")                                    \
        X(QUEUE_FULL, "%g requests of the model are not completed yet, its queue_requests is %l")                                  \
        X(QUEUE_SHARE, "this user has its share of the model's queue_requests, which is %l, and others want theirs")               \
        X(MADE_ROOM, "it made room for a user with less than its share of the model's queue_requests, which is %l")                \
        X(LATE, "what goes before takes %n, the deadline is in %m")                                                                \
        X(PASSED, "the deadline passed %n before the request was looked at")                                                       \
        X(EXPIRED, "the deadline, %m after the request was taken, passed before the result was there")                             \
        X(FIELDS, "a field that is reserved is not 0, or the class of its priority is not below %l")                               \
        X(SESSION, "session %g: sequences are not served")                                                                         \
        X(COUNTS, "%g inputs and outputs, the model has %l")                                                                       \
        X(TENSORS, "%g inputs and outputs, this connection has room for %l")                                                       \
        X(SAMPLES, "%g samples, the model's samples_max is %l")                                                                    \
        X(NO_SAMPLES, "%g samples, a request has at least %l")                                                                     \
        X(NO_BATCH, "%g samples, and the model has no batch: a request is %l")                                                     \
        X(TYPE, "%t is %G, the model wants %L")                                                                                    \
        X(RANK, "%t has rank %g, the model wants %l")                                                                              \
        X(DIMENSION, "%t: dimension %a is %g, the model wants %l")                                                                 \
        X(SYMBOL, "%t: dimension %a is %g, where the same dimension is %l elsewhere")                                              \
        X(BYTES, "%t has %g bytes, its shape has %l")                                                                              \
        X(CLAIM, "%t: %g bytes are not those of its type and dimensions")                                                          \
        X(CAPACITY, "%t has room for %g bytes, %l are needed")                                                                     \
        X(REGION, "%t lies in region %g, the client has %l")                                                                       \
        X(PLACE, "%t: %g bytes go beyond their region of %l")                                                                      \
        X(ALIGNMENT, "%t: offset %g is not a multiple of %l")                                                                      \
        X(SIZES_FULL, "all %l sizes of the model (shapes_max) are in use or being compiled")                                       \
        X(SIZES_SHARE, "this user has its share of the %l sizes of the model (shapes_max)")                                        \
        X(COMPILING, "%g sizes or models are being loaded for requests, at most %l at a time")                                     \
        X(COMPILING_SHARE, "this user has %g sizes or models being loaded for its requests, which is its share of %l")

enum sl_reason_code {
#define X(id, words) SL_REASON_##id,
        SL_REASONS(X)
#undef X
                SL_REASON_COUNT,
};

#define SL_REASON_OUTPUT 0x8000u /* in `tensor`: it is an output */

struct sl_reason {
        uint16_t code;   /* enum sl_reason_code */
        uint16_t tensor; /* which input, or which output with SL_REASON_OUTPUT */
        uint16_t axis;
        uint16_t text_bytes;
        uint64_t got, limit;
};
static_assert(sizeof(struct sl_reason) == 24, "");

struct sl_reason_line {
        alignas(64) struct sl_reason reason;
        char text[40]; /* goes on in the tag's further places; not terminated */
};
static_assert(sizeof(struct sl_reason_line) == 64, "one place of an output shape");
static_assert(offsetof(struct sl_reason_line, text) == 24, "");

/* Dispatcher: into the places of @tag. @text, for TEXT, is cut to what they hold; NULL: none. Before the completion is published.
 */
void sl_reason_put(const struct sl_queue_map *map, uint16_t tag, const struct sl_reason *reason, const char *text);

/*
 * Client: what lies in the places of @tag, the text cut to @bytes and terminated. Words are made of it only when somebody wants
 * them: an overloaded runtime refuses hundreds of thousands of requests a second. What makes no sense is NONE.
 */
void sl_reason_get(const struct sl_queue_map *map, uint16_t tag, struct sl_reason *ret_reason, char *ret_text, size_t bytes);

/* Its words, cut to @bytes and terminated; "" for NONE. @text: of TEXT. */
void sl_reason_words(const struct sl_reason *reason, const char *text, char *ret_words, size_t bytes);
