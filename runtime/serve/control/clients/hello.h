/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From HELLO to WELCOME. Control thread only.
 */
#pragma once

struct sl_error;
struct sl_message;
struct sl_session;
struct sl_sessions;

/*
 * Who is it, what may it, what does it get. On success the session has its role and has been answered. Return: 0, or
 * -errno with the text of the refusal; a channel that was made so far stays with the session, and goes with it.
 */
int sl_hello_admit(
        struct sl_sessions *sessions, struct sl_session *session, const struct sl_message *hello, struct sl_error *error);
