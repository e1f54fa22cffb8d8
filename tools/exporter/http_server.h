/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 through libmicrohttpd, run by the caller's loop. What strangers can take is bounded: connections, the bytes of a
 * request, and the time between two of a connection's bytes. When connections become scarce, the one that has asked for nothing for
 * the longest time is cut off for the newest, so that nobody keeps a scraper out by holding many. Requests that come together are
 * answered by one look at the runtimes, so that many cost little more than one. One thread.
 */
#pragma once

#include "site.h"

#include <stdbool.h>

struct sl_error;

#define HTTP_CONNECTIONS_MAX 32u
#define HTTP_IDLE_SECONDS    30u

struct http_server;

/* Takes @listen_fd, a listening socket, whatever the result. Return: 0; -ENOMEM; -EIO with text. */
int http_server_start(int listen_fd, struct site *site, struct http_server **ret_server, struct sl_error *error);

/*
 * One turn of the loop: waits until there is something to do, @fd is readable, or @wait_ms have passed (-1: as long as it takes),
 * and does it. Return: whether @fd is readable.
 */
bool http_server_run(struct http_server *server, int fd, int wait_ms);

/* No more connections. Then run on while answers are under way. */
void http_server_quiesce(struct http_server *server);
bool http_server_is_answering(const struct http_server *server);

/* Cuts off what is left. NULL is fine. */
struct http_server *http_server_stop(struct http_server *server);
