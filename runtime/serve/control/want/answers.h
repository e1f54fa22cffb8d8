/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to administrators, kept until the catalogue, the stats page and the page of tasks say what is answered: whoever looks
 * there behind an answer sees nothing older. Control thread only.
 */
#pragma once

#include <stdint.h>

struct sl_registry;

/* @text is copied. Where there is no memory for that, the answer is sent at once. */
void sl_answers_add(struct sl_registry *registry, uint64_t session, int status, const char *text);

/* Sends all of them, in their order. */
void sl_answers_send(struct sl_registry *registry);

/* Nobody hears them. */
void sl_answers_drop(struct sl_registry *registry);
