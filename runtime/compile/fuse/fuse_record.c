/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse_record.h"

#include "plan_cache.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0x3230455355464c53u /* "SLFUSE02" */

static bool ends(const char *text, size_t bytes)
{
        return memchr(text, 0, bytes) != NULL;
}

bool sl_fuse_record_read(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_fuse_record *ret_record)
{
        char here[SL_PROCESSOR_BYTES];

        sl_processor_name(here);
        if (sl_plan_cache_recall(cache, key, MAGIC, ret_record, sizeof(*ret_record)) < 0 ||
                !ends(ret_record->processor, sizeof(ret_record->processor)) || strcmp(ret_record->processor, here) != 0 ||
                !ends(ret_record->notes.text, sizeof(ret_record->notes.text)) ||
                !ends(ret_record->cause, sizeof(ret_record->cause)))
                return false;
        return ret_record->status == 0
                       ? sl_fuse_table_is_sound(&ret_record->table)
                       : ret_record->status == -ENODATA || ret_record->status == -EBADMSG || ret_record->status == -ETIME;
}

void sl_fuse_record_write(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_fuse_record *record)
{
        record->magic = MAGIC;
        memset(record->processor, 0, sizeof(record->processor));
        sl_processor_name(record->processor);
        sl_plan_cache_remember(cache, key, record, sizeof(*record));
}
