/* The one door to NVRTC: found with dlopen, called through our own prototypes, so that neither building nor
 * running gpucc needs CUDA unless a GPU target is asked for. NVRTC may be used from several threads at once.
 */
#include "codegen/nvrtc.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_MAJOR = 12, NVRTC_OUT_OF_MEMORY = 1 };

typedef struct nvrtc_program *program; /* opaque */

struct nvrtc {
    void *library;
    const char *path;
    int major, minor;
    int (*version)(int *major, int *minor);
    const char *(*error_string)(int result);
    int (*create)(program *out, const char *source, const char *name, int headers,
                  const char *const *header_text, const char *const *header_names);
    int (*destroy)(program *p);
    int (*compile)(program p, int count, const char *const *options);
    int (*log_size)(program p, size_t *bytes);
    int (*log)(program p, char *text);
    int (*cubin_size)(program p, size_t *bytes);
    int (*cubin)(program p, char *data);
    int (*ptx_size)(program p, size_t *bytes);
    int (*ptx)(program p, char *data);
};

/* A function pointer from dlsym, by way of its bytes: C has no conversion between the two. */
static bool find_function(void *library, const char *name, void *function, size_t bytes)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, bytes);
    return symbol != NULL;
}

static bool find_functions(struct nvrtc *nvrtc)
{
#define FIND(field, name) find_function(nvrtc->library, name, &nvrtc->field, sizeof nvrtc->field)
    return FIND(version, "nvrtcVersion") && FIND(error_string, "nvrtcGetErrorString") &&
           FIND(create, "nvrtcCreateProgram") && FIND(destroy, "nvrtcDestroyProgram") &&
           FIND(compile, "nvrtcCompileProgram") && FIND(log_size, "nvrtcGetProgramLogSize") &&
           FIND(log, "nvrtcGetProgramLog") && FIND(cubin_size, "nvrtcGetCUBINSize") &&
           FIND(cubin, "nvrtcGetCUBIN") && FIND(ptx_size, "nvrtcGetPTXSize") && FIND(ptx, "nvrtcGetPTX");
#undef FIND
}

/* Stays loaded: its static objects are not freed by unloading. $GPUCC_NVRTC alone when it is set; else the
 * dynamic loader's rules, then the toolkit's usual place. */
static void *open_library(const char **path)
{
    static const char *const names[] = {
        "libnvrtc.so.13",
        "libnvrtc.so.12",
        "/usr/local/cuda/lib64/libnvrtc.so.13",
        "/usr/local/cuda/lib64/libnvrtc.so.12",
        "/usr/local/cuda/lib64/libnvrtc.so",
    };
    const char *wish = getenv("GPUCC_NVRTC");
    if (wish && wish[0]) {
        *path = wish;
        return dlopen(wish, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        *path = names[i];
        if (library)
            return library;
    }
    return NULL;
}

struct nvrtc *nvrtc_open(struct arena *arena, struct diagnostics *diagnostics)
{
    struct nvrtc *nvrtc = arena_new(arena, struct nvrtc);
    nvrtc->library = open_library(&nvrtc->path);
    if (!nvrtc->library) {
        const char *wish = getenv("GPUCC_NVRTC");
        if (diagnostics && wish && wish[0])
            diag_error(diagnostics, DIAG_no_compiler, NULL,
                       "NVRTC cannot be loaded from %s, where GPUCC_NVRTC points: CUDA targets need it, "
                       "--target=cpu does "
                       "not",
                       diag_quote(diagnostics, wish));
        else if (diagnostics)
            diag_error(diagnostics, DIAG_no_compiler, NULL,
                       "NVRTC was not found (libnvrtc.so of CUDA %d or newer; set GPUCC_NVRTC to its path): "
                       "CUDA targets "
                       "need it, --target=cpu does not",
                       OLDEST_MAJOR);
        return NULL;
    }
    if (!find_functions(nvrtc) || nvrtc->version(&nvrtc->major, &nvrtc->minor) != 0) {
        if (diagnostics)
            diag_error(diagnostics, DIAG_no_compiler, NULL, "%s is no NVRTC",
                       diag_quote(diagnostics, nvrtc->path));
        nvrtc_close(nvrtc);
        return NULL;
    }
    if (nvrtc->major < OLDEST_MAJOR) {
        if (diagnostics)
            diag_error(diagnostics, DIAG_no_compiler, NULL, "%s is NVRTC %d.%d; %d.0 or newer is needed",
                       diag_quote(diagnostics, nvrtc->path), nvrtc->major, nvrtc->minor, OLDEST_MAJOR);
        nvrtc_close(nvrtc);
        return NULL;
    }
    return nvrtc;
}

void nvrtc_close(struct nvrtc *nvrtc)
{
    if (nvrtc && nvrtc->library)
        dlclose(nvrtc->library);
}

void nvrtc_version(const struct nvrtc *nvrtc, int *major, int *minor)
{
    *major = nvrtc->major;
    *minor = nvrtc->minor;
}

static char *program_log(const struct nvrtc *nvrtc, program p)
{
    size_t bytes = 0;
    if (nvrtc->log_size(p, &bytes) != 0 || bytes == 0)
        return NULL;
    char *text = calloc(1, bytes + 1);
    if (text)
        nvrtc->log(p, text);
    return text; /* a log that there is no memory for is done without */
}

static bool take_image(const struct nvrtc *nvrtc, program p, bool ptx, struct nvrtc_result *out)
{
    size_t bytes = 0;
    if ((ptx ? nvrtc->ptx_size(p, &bytes) : nvrtc->cubin_size(p, &bytes)) != 0 || bytes == 0)
        return false;
    out->image = malloc(bytes);
    out->bytes = bytes;
    out->error = out->image ? 0 : ENOMEM;
    return out->image && (ptx ? nvrtc->ptx(p, (char *)out->image) : nvrtc->cubin(p, (char *)out->image)) == 0;
}

bool nvrtc_compile(const struct nvrtc *nvrtc, const char *source, const char *const *options,
                   int option_count, bool ptx, struct nvrtc_result *out)
{
    program p = NULL;
    *out = (struct nvrtc_result){0};
    int result = nvrtc->create(&p, source, "kernels.cu", 0, NULL, NULL);
    bool good = result == 0;
    if (good) {
        result = nvrtc->compile(p, option_count, options);
        good = result == 0;
    }
    out->error = result == NVRTC_OUT_OF_MEMORY ? ENOMEM : 0;
    if (!p)
        return false;
    out->log = program_log(nvrtc, p);
    good = good && take_image(nvrtc, p, ptx, out);
    nvrtc->destroy(&p);
    return good;
}

void nvrtc_result_release(struct nvrtc_result *result)
{
    free(result->image);
    free(result->log);
    *result = (struct nvrtc_result){0};
}
