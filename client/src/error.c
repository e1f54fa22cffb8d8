/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "reason.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static_assert(STARLING_TEXT_BYTES == SL_ERROR_TEXT_BYTES, "one struct stands for the other");
static_assert(sizeof(struct starling_error) == sizeof(struct sl_error), "one struct stands for the other");

/* What the numbers mean here, where the system's words would mislead. */
static const char *own_words(int code)
{
        switch (code) {
        case 0:
                return "done";
        case EAGAIN:
                return "no room in the queue pair: reap completions first";
        case EBUSY:
                return "the model's queue is full";
        case EDOM:
                return "no variant of the task does what is needed";
        case ETIME:
                return "the deadline has passed";
        case ECANCELED:
                return "cancelled";
        case EMSGSIZE:
                return "an output's buffer is too small";
        case ESTALE:
                return "the model has changed: open it again";
        case EIO:
                return "the model failed";
        case ERANGE:
                return "an index in an input is out of range";
        case E2BIG:
                return "more than there may be, of tensors or of what the data make the model do";
        case EDQUOT:
                return "a quota, or the share of this user, is used up";
        case EPIPE:
                return "the runtime is gone";
        case EPROTO:
                return "the protocol was broken";
        case EPERM:
                return "the role of this client does not allow it";
        case ENODATA:
                return "nothing is in flight";
        case ETIMEDOUT:
                return "nothing came in time";
        case ECHILD:
                return "the handle was inherited through fork: connect in this process";
        default:
                return NULL;
        }
}

const char *starling_strerror(int status)
{
        int code = status < 0 ? (int)-(unsigned)status : status;
        const char *text = own_words(code);

        if (!text)
                text = strerrordesc_np(code);
        return text ? text : "unknown error";
}

const char *starling_reason_text(const struct starling_completion *completion, char *ret_text, size_t bytes)
{
        const struct starling_reason *from = &completion->reason;
        struct sl_reason reason = {
                .code = from->code, .tensor = from->tensor, .axis = from->axis, .got = from->got, .limit = from->limit};

        if (bytes == 0)
                return "";
        sl_reason_words(&reason, completion->reason.text ? completion->reason.text : "", ret_text, bytes);
        if (!ret_text[0])
                snprintf(ret_text, bytes, "%s", starling_strerror(completion->status));
        return ret_text;
}

const char *starling_version(void)
{
        return STARLING_VERSION;
}

uint64_t starling_clock_ns(void)
{
        return sl_clock_ns();
}

#define X(id, number, name, bytes) static_assert((int)STARLING_##id == (int)SL_DTYPE_##id, "types have the wire's numbers");
SL_DTYPES(X)
#undef X

size_t starling_dtype_bytes(uint32_t dtype)
{
        return sl_dtype_bytes(dtype);
}

const char *starling_dtype_name(uint32_t dtype)
{
        return sl_dtype_name(dtype);
}
