/*
 * What `starling compile` is to the runtime, for the tests. Some names of models make it misbehave instead.
 */
#include "compile.h"
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATUS_HELD 7

static const char *model_of(int argc, char **argv)
{
        for (int i = 1; i + 1 < argc; i++) {
                if (!strcmp(argv[i], "--model"))
                        return argv[i + 1];
        }
        return "";
}

static bool opens_socket(void)
{
        return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || errno != EPERM;
}

static bool runs_another_program(void)
{
        return execl("/bin/true", "true", NULL) == 0 || errno != EPERM;
}

static bool writes_a_file(void)
{
        return open("/tmp/starling-escape", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EPERM;
}

static bool removes_a_file(void)
{
        return unlink("/tmp/starling-escape") == 0 || errno != EPERM;
}

static bool signals_its_parent(void)
{
        return kill(getppid(), 0) == 0 || errno != EPERM;
}

static bool raises_its_limits(void)
{
        struct rlimit more = {.rlim_cur = 1000, .rlim_max = 1000};

        return setrlimit(RLIMIT_NOFILE, &more) == 0 || errno != EPERM;
}

static bool makes_a_process(void)
{
        return !SL_SANITIZED && (fork() >= 0 || errno != EPERM);
}

static bool traces_its_parent(void)
{
        return !SL_SANITIZED && (ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0 || errno != EPERM);
}

static void *nothing(void *argument)
{
        return argument;
}

/* Libraries may use threads. */
static bool has_no_threads(void)
{
        pthread_t thread;

        return pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

/* Return: STATUS_HELD when nothing gets out, else 20 + the number of the way out. */
static int try_to_escape(void)
{
        static bool (*const ways[])(void) = {opens_socket, runs_another_program, writes_a_file, removes_a_file, signals_its_parent,
                raises_its_limits, makes_a_process, traces_its_parent, has_no_threads};
        struct sl_sandbox_limits limits = {.memory_bytes = 1ull << 30, .seconds = 10, .parent = getppid()};

        if (sl_sandbox_enter(&limits, NULL) < 0)
                return 19;
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
                if (ways[i]())
                        return 20 + (int)i;
        }
        return STATUS_HELD;
}

static int spin(void)
{
        struct sl_sandbox_limits limits = {.memory_bytes = 1ull << 30, .seconds = 1, .parent = getppid()};

        if (sl_sandbox_enter(&limits, NULL) < 0)
                return 19;
        for (volatile uint64_t turns = 0;; turns = turns + 1)
                ;
}

int main(int argc, char **argv)
{
        const char *model = model_of(argc, argv);

        /* Under a sanitizer its handler would turn the signal into an exit. */
        if (!strcmp(model, "crash")) {
                signal(SIGSEGV, SIG_DFL);
                raise(SIGSEGV);
        }
        if (!strcmp(model, "escape"))
                return try_to_escape();
        if (!strcmp(model, "spin"))
                return spin();
        if (!strcmp(model, "sleep"))
                sleep(600);
        if (!strcmp(model, "silent"))
                return 3;
        return sl_compile_child_main(argc, argv);
}
