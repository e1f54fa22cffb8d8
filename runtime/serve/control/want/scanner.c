/* SPDX-License-Identifier: Apache-2.0 */
#include "scanner.h"

#include "base/thread.h"
#include "base/urgent.h"
#include "bell.h"
#include "runtime_options.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum stage { IDLE, SCANNING, FOUND };

struct sl_scanner {
        const struct sl_runtime_options *runtime;
        struct sl_bell *owner;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        enum stage stage;           /* under the lock */
        bool stop;                  /* under the lock */
        struct sl_scan_found found; /* the thread's while SCANNING, else its owner's */
};

static bool wait_for_work(struct sl_scanner *scanner)
{
        bool stop;

        pthread_mutex_lock(&scanner->lock);
        while (scanner->stage != SCANNING && !scanner->stop)
                pthread_cond_wait(&scanner->changed, &scanner->lock);
        stop = scanner->stop;
        pthread_mutex_unlock(&scanner->lock);
        return !stop;
}

static void set_stage(struct sl_scanner *scanner, enum stage stage)
{
        pthread_mutex_lock(&scanner->lock);
        scanner->stage = stage;
        pthread_cond_signal(&scanner->changed);
        pthread_mutex_unlock(&scanner->lock);
}

static void *scanner_main(void *argument)
{
        struct sl_scanner *scanner = argument;
        struct sl_scan_found *found = &scanner->found;

        sl_urgent_thread_unless_given(SL_CONTROL_NICENESS);
        while (wait_for_work(scanner)) {
                *found = (struct sl_scan_found){.status = 0};
                found->status =
                        scanner->runtime->scan(scanner->runtime->context, &found->listing.specs, &found->listing.n, &found->error);
                set_stage(scanner, FOUND);
                sl_bell_ring(scanner->owner, NULL);
        }
        return NULL;
}

static void scanner_destroy(struct sl_scanner *scanner)
{
        pthread_cond_destroy(&scanner->changed);
        pthread_mutex_destroy(&scanner->lock);
        free(scanner);
}

int sl_scanner_new(const struct sl_runtime_options *runtime, struct sl_bell *owner, struct sl_scanner **ret_scanner)
{
        struct sl_scanner *scanner = calloc(1, sizeof(*scanner));
        int r;

        if (!scanner)
                return -ENOMEM;
        scanner->runtime = runtime;
        scanner->owner = owner;
        pthread_mutex_init(&scanner->lock, NULL);
        pthread_cond_init(&scanner->changed, NULL);
        r = sl_thread_start_aside(NULL, "sl-scanner", scanner_main, scanner, &scanner->thread);
        if (r < 0) {
                scanner_destroy(scanner);
                return r;
        }
        *ret_scanner = scanner;
        return 0;
}

struct sl_scanner *sl_scanner_free(struct sl_scanner *scanner)
{
        if (!scanner)
                return NULL;
        pthread_mutex_lock(&scanner->lock);
        scanner->stop = true;
        pthread_cond_signal(&scanner->changed);
        pthread_mutex_unlock(&scanner->lock);
        pthread_join(scanner->thread, NULL);
        scanner_destroy(scanner);
        return NULL;
}

void sl_scanner_begin(struct sl_scanner *scanner)
{
        set_stage(scanner, SCANNING);
}

bool sl_scanner_take(struct sl_scanner *scanner, struct sl_scan_found *ret_found)
{
        bool is_found;

        pthread_mutex_lock(&scanner->lock);
        is_found = scanner->stage == FOUND;
        if (is_found)
                scanner->stage = IDLE;
        pthread_mutex_unlock(&scanner->lock);
        if (!is_found)
                return false;
        *ret_found = scanner->found;
        if (ret_found->status == 0 && scanner->runtime->scanned)
                scanner->runtime->scanned(scanner->runtime->context);
        return true;
}
