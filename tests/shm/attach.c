/* SPDX-License-Identifier: Apache-2.0 */
#include "attach.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

struct connection {
        int client, runtime;
};

static struct connection open_connection(void)
{
        int ends[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        return (struct connection){ends[0], ends[1]};
}

static void close_connection(struct connection *connection)
{
        close(connection->client);
        close(connection->runtime);
}

static int open_fds(void)
{
        DIR *folder = opendir("/proc/self/fd");
        int n = 0;

        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

/* Any bytes with any number of fds, as a hostile peer sends them. */
static void send_raw(int socket, const void *bytes, size_t n_bytes, int n_fds)
{
        char control[CMSG_SPACE(200 * sizeof(int))] = {0};
        struct iovec part = {(void *)bytes, n_bytes};
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
        int fds[200];

        if (n_fds > 0) {
                header.msg_control = control;
                header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
                rights->cmsg_level = SOL_SOCKET;
                rights->cmsg_type = SCM_RIGHTS;
                rights->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                for (int i = 0; i < n_fds; i++)
                        fds[i] = socket;
                memcpy(CMSG_DATA(rights), fds, n_fds * sizeof(int));
        }
        cr_assert_geq(sendmsg(socket, &header, 0), 0);
}

static struct sl_message hello(void)
{
        struct sl_message message;

        memset(&message, 0, sizeof(message));
        message.magic = SL_WIRE_MAGIC;
        message.type = SL_MESSAGE_HELLO;
        strcpy(message.hello.label, "test");
        return message;
}

Test(attach, a_message_arrives_with_its_fds_in_order_and_close_on_exec)
{
        struct connection c = open_connection();
        struct sl_message sent = hello(), got;
        int ends[2], fds[SL_MESSAGE_FDS_MAX];
        uint32_t n;
        char byte = 0;

        cr_assert_eq(pipe(ends), 0);
        cr_assert_eq(sl_message_send(c.client, &sent, ends, 2), 0);
        cr_assert_eq(sl_message_receive(c.runtime, &got, fds, SL_MESSAGE_FDS_MAX, &n, 0), 0);
        cr_expect_eq(n, 2);
        cr_expect_eq(memcmp(&sent, &got, sizeof(sent)), 0);
        cr_expect(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
        cr_assert_eq(write(fds[1], "x", 1), 1);
        cr_assert_eq(read(ends[0], &byte, 1), 1);
        cr_expect_eq(byte, 'x', "the second fd is the writing end of the pipe whose reading end was the first");
        close_connection(&c);
}

Test(attach, malformed_packets_are_refused_and_leak_no_fd)
{
        struct connection c = open_connection();
        char bytes[2 * sizeof(struct sl_message)] = {0};
        struct sl_message good = hello(), wrong = hello(), named = hello(), twice = hello(), endless = hello(), got;
        int before = open_fds(), fds[SL_MESSAGE_FDS_MAX];
        uint32_t n;

        wrong.magic++;
        memcpy(bytes, &good, sizeof(good));
        strcpy(named.model, "name");
        strcpy(twice.model + 5, "more");
        memcpy(twice.model, "name", 4);
        memset(endless.model, 'n', sizeof(endless.model));
        struct {
                const void *bytes;
                size_t n_bytes;
                int n_fds;
                uint32_t fds_max;
        } cases[] = {
                {bytes, 1, 3, SL_MESSAGE_FDS_MAX},
                {bytes, SL_MESSAGE_BYTES - 1, 3, SL_MESSAGE_FDS_MAX},
                {bytes, SL_MESSAGE_BYTES + 1, 3, SL_MESSAGE_FDS_MAX},
                {bytes, sizeof(good), 3, SL_MESSAGE_FDS_MAX},
                {bytes, sizeof(bytes), SL_MESSAGE_FDS_MAX, SL_MESSAGE_FDS_MAX},
                {&named, SL_MESSAGE_BYTES + 4, 3, SL_MESSAGE_FDS_MAX},
                {&named, SL_MESSAGE_BYTES + 6, 3, SL_MESSAGE_FDS_MAX},
                {&twice, SL_MESSAGE_BYTES + 10, 3, SL_MESSAGE_FDS_MAX},
                {&endless, sizeof(endless), 3, SL_MESSAGE_FDS_MAX},
                {&wrong, SL_MESSAGE_BYTES, 3, SL_MESSAGE_FDS_MAX},
                {&good, SL_MESSAGE_BYTES, 3, 2},
                {&good, SL_MESSAGE_BYTES, 1, 0},
                {&good, SL_MESSAGE_BYTES, SL_MESSAGE_FDS_MAX + 1, SL_MESSAGE_FDS_MAX},
                {&good, SL_MESSAGE_BYTES, 200, SL_MESSAGE_FDS_MAX},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                send_raw(c.client, cases[i].bytes, cases[i].n_bytes, cases[i].n_fds);
                cr_expect_eq(sl_message_receive(c.runtime, &got, fds, cases[i].fds_max, &n, 0), -EBADMSG, "case %zu", i);
                cr_expect_eq(open_fds(), before, "case %zu", i);
        }
        close_connection(&c);
}

/* By either way of receiving; one without a name is as long as in any version. */
Test(attach, a_name_of_any_length_arrives_whole)
{
        static const size_t lengths[] = {1, 63, 64, 1023, 1024, SL_MODEL_NAME_BYTES - 1};
        struct connection c = open_connection();
        char raw[2 * sizeof(struct sl_message)];
        struct sl_message sent = hello(), got;
        uint32_t n;

        for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(*lengths); i++) {
                memset(&got, 'x', sizeof(got));
                memset(sent.model, 'a' + (int)i, lengths[i / 2]);
                cr_assert_eq(sl_message_send(c.client, &sent, NULL, 0), 0);
                cr_assert_eq(i % 2 ? sl_message_receive(c.runtime, &got, NULL, 0, &n, 0)
                                   : sl_message_receive_guarded(c.runtime, &got, NULL),
                        0);
                cr_expect_eq(memcmp(&sent, &got, sizeof(sent)), 0, "%zu bytes", lengths[i / 2]);
        }
        memset(sent.model, 0, sizeof(sent.model));
        cr_assert_eq(sl_message_send(c.client, &sent, NULL, 0), 0);
        cr_expect_eq(recv(c.runtime, raw, sizeof(raw), 0), 816);
        close_connection(&c);
}

Test(attach, an_empty_packet_ends_the_connection_and_leaks_no_fd)
{
        struct connection c = open_connection();
        struct sl_message got;
        int before = open_fds(), fds[SL_MESSAGE_FDS_MAX];
        uint32_t n;

        send_raw(c.client, "", 0, 3);
        cr_expect_eq(sl_message_receive(c.runtime, &got, fds, SL_MESSAGE_FDS_MAX, &n, 0), -EPIPE);
        cr_expect_eq(open_fds(), before);
        close_connection(&c);
}

static void on_alarm(int signal)
{
        (void)signal;
}

/* As profilers send them, more often than the limit: each begins the socket's own limit anew. */
Test(attach, a_time_limit_holds_among_signals, .timeout = 10)
{
        struct connection c = open_connection();
        const struct timeval limit = {.tv_usec = 300000};
        const struct itimerval often = {.it_interval = {.tv_usec = 50000}, .it_value = {.tv_usec = 50000}}, never = {{0}, {0}};
        struct sl_message got;
        int fds[SL_MESSAGE_FDS_MAX];
        uint32_t n;

        cr_assert_eq(setsockopt(c.client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
        cr_assert_neq(sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_RESTART}, NULL), -1);
        cr_assert_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
        cr_expect_eq(sl_message_receive(c.client, &got, fds, SL_MESSAGE_FDS_MAX, &n, 0), -EAGAIN);
        cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
        close_connection(&c);
}

Test(attach, the_end_of_the_peer_is_epipe_for_both_directions)
{
        struct connection c = open_connection();
        struct sl_message message = hello();
        int fds[1];
        uint32_t n;

        close(c.client);
        cr_expect_eq(sl_message_receive(c.runtime, &message, fds, 1, &n, 0), -EPIPE);
        message = hello();
        cr_expect_eq(sl_message_send(c.runtime, &message, NULL, 0), -EPIPE);
        close(c.runtime);
}

Test(attach, nothing_to_receive_is_eagain_when_asked_not_to_wait)
{
        struct connection c = open_connection();
        struct sl_message message;
        int fds[1];
        uint32_t n;

        cr_expect_eq(sl_message_receive(c.runtime, &message, fds, 1, &n, MSG_DONTWAIT), -EAGAIN);
        close_connection(&c);
}

Test(attach, more_fds_than_a_message_may_have_are_not_sent)
{
        struct connection c = open_connection();
        struct sl_message message = hello();
        int fds[SL_MESSAGE_FDS_MAX + 1] = {0};

        cr_expect_eq(sl_message_send(c.client, &message, fds, SL_MESSAGE_FDS_MAX + 1), -EINVAL);
        close_connection(&c);
}

Test(attach, a_text_always_ends)
{
        struct connection c = open_connection();
        struct sl_message message = hello(), got;
        uint32_t n;

        memset(message.text, 'x', sizeof(message.text));
        cr_assert_eq(sl_message_send(c.client, &message, NULL, 0), 0);
        cr_assert_eq(sl_message_receive(c.runtime, &got, NULL, 0, &n, 0), 0);
        cr_expect_eq(strnlen(got.text, sizeof(got.text)), sizeof(got.text) - 1);
        close_connection(&c);
}

static void expect_path(const char *socket_dir, const char *runtime_dir, const char *expected)
{
        char path[128] = "";

        unsetenv("STARLING_SOCKET_DIR");
        unsetenv("XDG_RUNTIME_DIR");
        if (socket_dir)
                setenv("STARLING_SOCKET_DIR", socket_dir, 1);
        if (runtime_dir)
                setenv("XDG_RUNTIME_DIR", runtime_dir, 1);
        cr_expect_eq(sl_socket_path("demo", path, sizeof(path)), 0);
        cr_expect_str_eq(path, expected);
}

Test(socket_path, own_variable_comes_first_then_the_runtime_directory_then_run)
{
        expect_path("/a", "/b", "/a/demo.sock");
        expect_path(NULL, "/b", "/b/starling/demo.sock");
        expect_path(NULL, NULL, "/run/starling/demo.sock");
}

Test(socket_path, empty_and_relative_directories_count_as_unset)
{
        expect_path("", "", "/run/starling/demo.sock");
        expect_path("here", "/b", "/b/starling/demo.sock");
}

Test(socket_path, a_client_looks_where_the_runtime_listens)
{
        char path[128] = "", found[128] = "";

        setenv("STARLING_SOCKET_DIR", "/a", 1);
        setenv("XDG_RUNTIME_DIR", "/b", 1);
        cr_expect_eq(sl_socket_find("demo", found, sizeof(found)), 0);
        cr_expect_str_eq(found, "/a/demo.sock");
        unsetenv("STARLING_SOCKET_DIR");
        /* No runtime of the system has this name. */
        cr_expect_eq(sl_socket_path("no-such-runtime", path, sizeof(path)), 0);
        cr_expect_eq(sl_socket_find("no-such-runtime", found, sizeof(found)), 0);
        cr_expect_str_eq(found, path);
        cr_expect_eq(sl_socket_find("a/b", found, sizeof(found)), -EINVAL);
}

Test(socket_path, a_name_with_a_slash_or_without_a_letter_is_refused)
{
        char path[128];

        cr_expect_eq(sl_socket_path("a/b", path, sizeof(path)), -EINVAL);
        cr_expect_eq(sl_socket_path("", path, sizeof(path)), -EINVAL);
}

Test(socket_path, what_does_not_fit_a_socket_address_or_the_buffer_is_refused)
{
        char path[256], name[200], small[8];

        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        setenv("STARLING_SOCKET_DIR", "/a", 1);
        cr_expect_eq(sl_socket_path(name, path, sizeof(path)), -ENAMETOOLONG);
        cr_expect_eq(sl_socket_path("demo", small, sizeof(small)), -ENAMETOOLONG);

        size_t longest = sizeof(((struct sockaddr_un *)0)->sun_path) - 1 - strlen("/a/.sock");
        name[longest] = '\0';
        cr_expect_eq(sl_socket_path(name, path, sizeof(path)), 0);
}
