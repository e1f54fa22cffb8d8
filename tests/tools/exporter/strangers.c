/* SPDX-License-Identifier: Apache-2.0 */
/* What strangers can do to the exporter: nothing that others notice. */
#include "server_bench.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(exporter_strangers, .init = server_bench_init, .fini = server_bench_deinit, .timeout = 60);

static uint32_t count_fds(void)
{
        char path[64];
        uint32_t n = 0;
        DIR *folder_of_fds;

        snprintf(path, sizeof(path), "/proc/%d/fd", exporter.pid);
        folder_of_fds = opendir(path);
        while (folder_of_fds && readdir(folder_of_fds))
                n++;
        if (folder_of_fds)
                closedir(folder_of_fds);
        return n;
}

/* Connections end a moment after their other side. */
static void expect_fds(uint32_t wanted)
{
        for (int ms = 0; ms < 60000 && count_fds() > wanted; ms++)
                usleep(1000);
        cr_expect_leq(count_fds(), wanted, "descriptors are left");
}

Test(exporter_strangers, no_request_breaks_it)
{
        static char long_line[100000];
        const struct {
                const char *bytes;
                size_t n;
        } rows[] = {
#define BYTES(text) {text, sizeof(text) - 1}
                BYTES(""),
                BYTES("\r\n\r\n\r\n"),
                BYTES("\0\0\0\0"),
                BYTES("GET"),
                BYTES("GET /metrics\r\n\r\n"),
                BYTES("GET /metrics HTTP/0.9\r\n\r\n"),
                BYTES("GET /metrics HTTP/9.9\r\nHost: localhost\r\n\r\n"),
                BYTES("GET /metrics HTTP/1.1\r\n\r\n"),
                BYTES("GET /metrics HTTP/1.1\r\nHost\r\n\r\n"),
                BYTES("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: \xff\xfe;q=\0\r\n\r\n"),
                BYTES("GET /metrics HTTP/1.1\nHost: localhost\nConnection: close\n\n"),
                BYTES("GET /%00%ff%zz%2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
                BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
                BYTES("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"),
                BYTES("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
                BYTES("GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde"),
                BYTES("GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab"),
                BYTES("GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
                BYTES("POST /metrics HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n"),
                BYTES("GET /metrics HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n"),
                {long_line, sizeof(long_line)},
        };
        uint32_t fds;

        memset(long_line, 'A', sizeof(long_line));
        create_page(2);
        start();
        expect_scrape(1);
        fds = count_fds();
        for (size_t i = 0; i < LENGTH(rows); i++) {
                int fd = exporter_connect(&exporter);

                exporter_send(fd, rows[i].bytes, rows[i].n, true);
                free(exporter_receive(fd));
                expect_scrape(1);
        }
        expect_fds(fds);
}

Test(exporter_strangers, random_bytes_do_not_break_it)
{
        const char *const words[] = {"GET ", "POST ", "/metrics", "/", "/api/stats", "/api/history", " HTTP/1.1", "\r\n",
                "\r\n\r\n", "Host: localhost", "Content-Length: ", "7", "Transfer-Encoding: chunked", "Connection: ", "close",
                "Accept: ", "\xff", " ", ":", ",", ";q=", "\t", "%", "0\r\n\r\n"};
        uint32_t fds;

        start();
        expect_scrape(0);
        fds = count_fds();
        srand48(3);
        for (int round = 0; round < 500; round++) {
                int fd = exporter_connect(&exporter);

                for (long n = lrand48() % 30; n >= 0; n--) {
                        const char *word = words[lrand48() % (long)LENGTH(words)];

                        exporter_send(fd, word, strlen(word), false);
                }
                exporter_send(fd, "", 0, true);
                free(exporter_receive(fd));
        }
        expect_scrape(0);
        expect_fds(fds);
}

Test(exporter_strangers, nobody_keeps_others_out_by_holding_connections)
{
        int held[200];
        uint32_t fds;

        start();
        expect_scrape(0);
        fds = count_fds();
        for (size_t i = 0; i < LENGTH(held); i++) {
                held[i] = exporter_connect(&exporter);
                exporter_send(held[i], "GET /metrics HT", i % 16, false); /* nothing, or the begin of a request */
        }
        for (int i = 0; i < 10; i++)
                expect_scrape(0);
        cr_expect_leq(count_fds(), fds + 32);
        for (size_t i = 0; i < LENGTH(held); i++)
                close(held[i]);
        expect_fds(fds);
}

Test(exporter_strangers, those_who_do_not_read_their_answers_hold_up_nobody)
{
        const char *const requests[] = {"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                "GET /api/stats HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /api/history HTTP/1.1\r\nHost: localhost\r\n\r\n"};
        int held[40], small = 4096;
        uint32_t fds;

        create_page(60); /* of more than a megabyte, which sockets do not take */
        start();
        expect_scrape(1);
        fds = count_fds();
        for (size_t i = 0; i < LENGTH(held); i++) {
                held[i] = exporter_connect(&exporter);
                setsockopt(held[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
                exporter_send(held[i], requests[i % LENGTH(requests)], strlen(requests[i % LENGTH(requests)]), false);
        }
        expect_scrape(1);
        for (size_t i = 0; i < LENGTH(held); i++)
                close(held[i]);
        expect_fds(fds);
        expect_scrape(1);
}

Test(exporter_strangers, it_ends_though_somebody_does_not_read)
{
        const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        int fd;

        create_page(60);
        start();
        fd = exporter_connect(&exporter);
        exporter_send(fd, request, strlen(request), false);
        expect_scrape(1);
        cr_expect_eq(exporter_end(&exporter, SIGTERM), 0);
        close(fd);
}
