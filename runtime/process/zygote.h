/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zygote: a process that was started once, has its libraries loaded and what they need set up, and forks a child for each order,
 * before that comes. A child is what the program would be if it were started anew with the same arguments, but some milliseconds
 * sooner. No child serves twice, and the zygote itself does nothing of what they do: it reads no file, and hears of no order.
 *
 *     none --start()--> warming --has made a child--> waiting --sl_zygote_fork()--> making --has made the next--> waiting
 *       ^                  |                            |                             |
 *       +------ stop() ----+----------------------------+-----------------------------+
 *                                   it has ended (sl_zygote_hear()), or cannot be reached; the next order starts another
 *
 * A child is its owner's, as if the owner had started it (CLONE_PARENT): the owner reaps it, and it can ask to die with the thread
 * that started the zygote, as the zygote and a child that waits do. Children of one zygote have one layout of addresses, so who has
 * seen one of them crash starts another zygote (sl_zygote_renew()): nobody is to find out by crashes where things lie.
 *
 * The zygote leads a process group, of which a child is until it has its order: both are ended and reaped together.
 *
 * One owner thread, which lives as long as what it starts shall.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct sl_zygote;

/*
 * @argv: of the zygote's program, which calls sl_zygote_serve(); it and @environment are the caller's while the zygote lives.
 * Nothing is started before the first order. Return: 0, -ENOMEM, -EMFILE, ...
 */
struct sl_zygote_options {
        const char *program;
        char *const *argv, *const *environment;
};
int sl_zygote_new(const struct sl_zygote_options *options, struct sl_zygote **ret_zygote);

/* Kills and reaps the zygote and the child that waits; others go on. NULL is fine. Returns NULL. */
struct sl_zygote *sl_zygote_free(struct sl_zygote *zygote);

/*
 * Readable when the zygote has ended, which somebody may have killed: sl_zygote_hear() then reaps it, and the child that waits.
 * Whoever does not ask does that with the next order.
 */
int sl_zygote_fd(const struct sl_zygote *zygote);
void sl_zygote_hear(struct sl_zygote *zygote);

/*
 * A child with these arguments, these descriptors as its 3, 4, ..., and the processors of the calling thread. Waits for no more
 * than a fork; for a child that is not made, or does not answer, 0.5 s. Return: 0, and the caller reaps *ret_pid; -EAGAIN there is
 * no zygote that can, yet or any more: start the program itself; -EIO the zygote ended over it, or was ended as it said nothing
 * (somebody has stopped it), with the child, which may have had the order: what that was given must not be used again.
 */
int sl_zygote_fork(struct sl_zygote *zygote, char *const *argv, const int *fds, uint32_t n_fds, pid_t *ret_pid);

/* Waits until there is one that can, starting it if need be. Return: 0; -EIO: it does not come about. */
int sl_zygote_await(struct sl_zygote *zygote);

/* Another zygote for the next orders. NULL is fine. */
void sl_zygote_renew(struct sl_zygote *zygote);

/* Of the zygote that forks, or would; 0: there is none. For tests and the log. */
pid_t sl_zygote_pid(const struct sl_zygote *zygote);
