/* SPDX-License-Identifier: Apache-2.0 */
/* What the process of a GPU can open once its sandbox is closed: what a driver needs, and nothing else. */
#include "gpu_sandbox.h"

#include "landlock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool opens(const char *folder, const char *name, int flags)
{
        char path[256];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        fd = open(path, flags);
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

static bool names_a_thread(void)
{
        char path[64];
        int fd;
        bool written;

        snprintf(path, sizeof(path), "/proc/%d/task/%ld/comm", getpid(), syscall(SYS_gettid));
        fd = open(path, O_RDWR);
        written = fd >= 0 && write(fd, "cuda", 4) == 4;
        close(fd);
        return written;
}

/* A node that answers requests. Of files no kernel asks whether a domain lets them be asked. */
static bool can_ask(const char *folder)
{
        char path[256];
        int fd, n = -1;

        snprintf(path, sizeof(path), "%s/nvidiactl", folder);
        fd = open(path, O_RDWR);
        return fd >= 0 && (ioctl(fd, FIONREAD, &n) == 0 || errno == ENOTTY);
}

/* Return: 0; else which of them is not as it should be, from 1 on. */
static int try_all(const char *devices)
{
        if (sl_gpu_sandbox_enter(devices))
                return 1;
        if (!opens(devices, "nvidia0", O_RDWR) || !opens(devices, "nvidia-caps/cap1", O_RDWR))
                return 2;
        if (!can_ask(devices))
                return 3;
        if (opens(devices, "other", O_RDONLY) || errno != EACCES)
                return 4;
        if (!opens("/etc", "passwd", O_RDONLY))
                return 5;
        if (opens("/proc/self", "oom_score_adj", O_WRONLY) || errno != EACCES)
                return 6;
        return names_a_thread() ? 0 : 7;
}

static void make(const char *folder, const char *name)
{
        char path[256];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        fd = open(path, O_CREAT | O_WRONLY, 0600);
        cr_assert_geq(fd, 0);
        close(fd);
}

static void make_devices(char *ret_folder)
{
        char path[256];

        strcpy(ret_folder, "/tmp/starling-devices-XXXXXX");
        cr_assert_not_null(mkdtemp(ret_folder));
        snprintf(path, sizeof(path), "%s/nvidia-caps", ret_folder);
        cr_assert_eq(mkdir(path, 0700), 0);
        make(path, "cap1");
        make(ret_folder, "nvidia0");
        make(ret_folder, "other");
        snprintf(path, sizeof(path), "%s/nvidiactl", ret_folder);
        cr_assert_eq(mkfifo(path, 0600), 0);
}

static void remove_devices(const char *folder)
{
        static const char *const names[] = {"nvidia-caps/cap1", "nvidia-caps", "nvidia0", "nvidiactl", "other", ""};
        char path[256];

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
                cr_expect_eq(remove(path), 0, "%s", path);
        }
}

Test(sandbox, a_driver_can_open_its_devices_anew_and_name_its_threads)
{
        char folder[32];
        int status;
        pid_t child;

        if (!sl_landlock_version())
                cr_skip("the kernel has no Landlock");
        make_devices(folder);
        child = fork();
        if (child == 0)
                _exit(try_all(folder));
        cr_assert_eq(waitpid(child, &status, 0), child);
        remove_devices(folder);
        cr_assert(WIFEXITED(status));
        cr_expect_eq(WEXITSTATUS(status), 0, "%d", WEXITSTATUS(status));
}
