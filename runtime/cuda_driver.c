/* Finds libcuda's functions by name. */
#include "runtime/cuda_driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

const struct cuda_names cuda_names = {
#define CUDA_SYMBOL(field, name, parameters)     .field = #name,
#define CUDA_NEW_SYMBOL(field, name, parameters) CUDA_SYMBOL(field, name, parameters)
#include "runtime/cuda_symbols.def"
#undef CUDA_SYMBOL
#undef CUDA_NEW_SYMBOL
};

static const struct symbol_row {
    const char *name;
    size_t offset;
    int may_lack;
} rows[] = {
#define CUDA_SYMBOL(field, name, parameters)     {#name, offsetof(struct cuda_functions, field), 0},
#define CUDA_NEW_SYMBOL(field, name, parameters) {#name, offsetof(struct cuda_functions, field), 1},
#include "runtime/cuda_symbols.def"
#undef CUDA_SYMBOL
#undef CUDA_NEW_SYMBOL
};

gpucc_status cuda_driver_open(struct cuda_functions **functions, struct runtime_error *error)
{
    struct cuda_functions *opened = calloc(1, sizeof *opened);
    if (!opened)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    opened->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!opened->library) {
        const char *reason = dlerror();
        cuda_driver_close(opened);
        return runtime_fail(error, GPUCC_NO_DEVICE, "the NVIDIA driver cannot be loaded: %s",
                            reason ? reason : "libcuda.so.1 is missing");
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *symbol = dlsym(opened->library, rows[i].name);
        if (!symbol && !rows[i].may_lack) {
            cuda_driver_close(opened);
            return runtime_fail(error, GPUCC_NO_DEVICE, "the NVIDIA driver is too old: it has no %s",
                                rows[i].name);
        }
        /* dlsym's result is a function in every entry; POSIX gives them the same representation. */
        memcpy((char *)opened + rows[i].offset, &symbol, sizeof symbol);
    }
    cuda_result result = opened->init(0);
    if (result != 0) {
        cuda_check(opened, result, CUDA_NAME(init), "cannot initialise the NVIDIA driver", error);
        cuda_driver_close(opened);
        return GPUCC_NO_DEVICE;
    }
    *functions = opened;
    return GPUCC_OK;
}

void cuda_driver_close(struct cuda_functions *functions)
{
    if (!functions)
        return;
    if (functions->library)
        dlclose(functions->library);
    free(functions);
}

gpucc_status cuda_check(const struct cuda_functions *functions, cuda_result result, const char *function,
                        const char *action, struct runtime_error *error)
{
    if (result == 0)
        return GPUCC_OK;
    const char *name = NULL, *text = NULL;
    if (functions->error_name(result, &name) != 0 || !name)
        name = "unknown error";
    if (functions->error_text(result, &text) != 0 || !text)
        text = "no description";
    return runtime_fail(error, result == CUDA_NO_MEMORY ? GPUCC_OUT_OF_MEMORY : GPUCC_DEVICE_ERROR,
                        "%s: %s: %s (%s)", action, function, name, text);
}
