/* Error texts: formatted into the caller's memory, names of the model escaped. */
#include "runtime/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

gpucc_status runtime_fail(struct runtime_error *error, gpucc_status status, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return status;
}

const char *runtime_escape(const char *text, char *out, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        int plain = *c >= 0x20 && *c < 0x7f && *c != '"' && *c != '\\';
        size_t need = plain ? 1 : 4;
        /* Room for this byte, for "..." and for the NUL. */
        if (used + need + 4 > bytes) {
            size_t dots = bytes > 4 ? 3 : 0;
            memcpy(out + used, "...", dots);
            used += dots;
            break;
        }
        if (plain) {
            out[used++] = (char)*c;
        } else {
            out[used++] = '\\';
            out[used++] = 'x';
            out[used++] = digits[*c >> 4];
            out[used++] = digits[*c & 15];
        }
    }
    if (bytes)
        out[used] = '\0';
    return out;
}
