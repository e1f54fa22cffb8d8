/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiler's process that a hostile model has taken over: it enters the sandbox as the compiler does, and tries to get out. What
 * it finds it reports as the compiler reports its failures.
 */
#pragma once

#define ESCAPE_PREFIX "escape-"

/*
 * "ways:FILE"     the ways out, one by one; FILE is a victim that the process may write to and has open
 * "free:FILE"     the same outside of the sandbox: each of them must lead out, or trying it proves nothing
 * "filtered:FILE"   the same as "ways" in a sandbox that lacks Landlock: the filter of system calls remains
 * "unfiltered:FILE" the same in a sandbox that lacks the filter of system calls: Landlock, and what the process gave up, remain
 * "calls"         every number of a system call that is not on the list
 * "foreign-calls" a call of another architecture's table
 * "names"         asks for external data by names that lead elsewhere; "data" is a file of six bytes that it gets
 * "asks-often"    asks until it is refused for asking, and once more
 * "asks-deaf"     asks and does not listen
 * "limits"        reports its limits, "AS FSIZE CPU NOFILE NPROC CORE"
 * Return: exit status: ESCAPE_HELD, or 1 after a line that names the way out.
 */
int escape_main(const char *what);

#define ESCAPE_HELD 7
