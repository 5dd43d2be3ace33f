/* Rules about the source tree that no compiler checks:
 *
 *     check_tree ROOT arrows       #include lines follow the folders' arrows and are written from the root
 *     check_tree ROOT lengths      files under 900 lines (*.def and data exempt), functions under 100
 *     check_tree ROOT strategies   codegen/strategy names no operator of ir/ops.def
 *     check_tree ROOT sources      build files list their sources: no file(GLOB)
 *     check_tree ROOT words        no file names a path or a host of the machine it was written on
 *
 * Prints every violation; exit status 1 when there is one, 2 when the tree cannot be read. Relies on
 * clang-format: a function's braces stand alone in the first column, a table's do not. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MOST_FILE_LINES = 900,
    MOST_FUNCTION_LINES = 100,
    MOST_DEPTH = 32,
    PATH_ROOM = 4096,
    MOST_NAMES = 512
};

struct check {
    const char *root;
    void (*look)(struct check *check, const char *path, const char *text);
    unsigned files, violations;
    char *names[MOST_NAMES]; /* operators, for `strategies` */
    unsigned name_count;
};

static void violate(struct check *check, const char *path, unsigned line, const char *what,
                    const char *detail)
{
    check->violations++;
    printf("%s:%u: %s%s\n", path, line, what, detail);
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), end = strlen(suffix);
    return length >= end && strcmp(text + length - end, suffix) == 0;
}

static bool is_code(const char *path)
{
    return ends_with(path, ".c") || ends_with(path, ".h") || ends_with(path, ".cuh") ||
           ends_with(path, ".def");
}

/* The whole file with a NUL behind it; NULL for a file that cannot be read or holds a NUL (not text). */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        text = size >= 0 ? malloc((size_t)size + 1) : NULL;
        if (text) {
            size_t got = fread(text, 1, (size_t)size, file);
            text[got] = '\0';
            if (strlen(text) != got) {
                free(text);
                text = NULL;
            }
        }
    }
    fclose(file);
    return text;
}

/* Copies the next line (cut to the room) and moves behind it; false at the end. */
static bool next_line(const char **at, char *line, size_t room)
{
    if (!**at)
        return false;
    size_t length = strcspn(*at, "\n");
    size_t kept = length < room - 1 ? length : room - 1;
    memcpy(line, *at, kept);
    line[kept] = '\0';
    *at += length + ((*at)[length] == '\n');
    return true;
}

/* A folder may include what its row lists, and itself. The longest prefix that fits decides. */
static const struct arrow {
    const char *folder;
    const char *to[12];
} arrows[] = {
    {"ir/support/", {0}},
    {"ir/", {"ir/support/", 0}},
    {"frontend/", {"ir/", 0}},
    {"passes/", {"ir/", 0}},
    {"codegen/", {"ir/", "runtime/bundle_format.h", "runtime/arena_plan.h", "runtime/sha256.h", 0}},
    {"frontend/driver/", {"frontend/", "passes/", "codegen/", "ir/", "runtime/info.h", "gpucc/", 0}},
    {"runtime/", {"gpucc/", 0}},
    {"include/gpucc/", {"gpucc/", 0}},
    {"samples/", {"gpucc/", 0}},
    {"tests/", {"frontend/", "passes/", "codegen/", "ir/", "runtime/", "gpucc/", 0}},
};

/* Third-party headers and the folder that alone may see them. */
static const struct third_party {
    const char *header, *folder;
} third_party[] = {
    {"protobuf-c/", "frontend/"},
    {"llvm-c/", "codegen/"},
    {"cmocka.h", "tests/"},
};

static const struct arrow *arrow_of(const char *path)
{
    const struct arrow *best = NULL;
    for (size_t i = 0; i < sizeof arrows / sizeof *arrows; i++)
        if (starts_with(path, arrows[i].folder) && (!best || strlen(arrows[i].folder) > strlen(best->folder)))
            best = &arrows[i];
    return best;
}

static bool arrow_allows(const struct arrow *arrow, const char *path, const char *target)
{
    /* A folder includes itself, but a parent does not own its inner folders' arrows: frontend/ must not see
     * driver/. */
    const struct arrow *owner = arrow_of(target);
    if (owner == arrow)
        return true;
    for (unsigned i = 0; arrow->to[i]; i++)
        if (starts_with(target, arrow->to[i]) &&
            (starts_with(path, "tests/") || !starts_with(target, "frontend/driver/")))
            return true;
    return false;
}

static void look_at_arrows(struct check *check, const char *path, const char *text)
{
    const struct arrow *arrow = arrow_of(path);
    if (!arrow || !is_code(path))
        return;
    char line[PATH_ROOM];
    for (unsigned number = 1; next_line(&text, line, sizeof line); number++) {
        const char *at = line + strspn(line, " \t");
        if (*at != '#')
            continue;
        at += 1 + strspn(at + 1, " \t");
        if (!starts_with(at, "include"))
            continue;
        at += strcspn(at, "\"<");
        bool quoted = *at == '"';
        if (!*at)
            continue;
        char target[PATH_ROOM];
        size_t length = strcspn(at + 1, "\">");
        memcpy(target, at + 1, length);
        target[length] = '\0';
        for (size_t i = 0; i < sizeof third_party / sizeof *third_party; i++)
            if (starts_with(target, third_party[i].header) && !starts_with(path, third_party[i].folder))
                violate(check, path, number, "third-party header outside its folder: ", target);
        if (!quoted && !starts_with(target, "gpucc/"))
            continue;
        if (!arrow_of(target) && !starts_with(target, "gpucc/"))
            violate(check, path, number, "not written from the root: ", target);
        else if (!arrow_allows(arrow, path, target))
            violate(check, path, number, "forbidden arrow to ", target);
    }
}

static void look_at_lengths(struct check *check, const char *path, const char *text)
{
    if (!is_code(path) && !ends_with(path, ".py") && !ends_with(path, ".cmake") && !ends_with(path, ".proto"))
        return;
    char line[PATH_ROOM], detail[64];
    unsigned number = 0, begin = 0;
    while (next_line(&text, line, sizeof line)) {
        number++;
        if (strcmp(line, "{") == 0)
            begin = number;
        if (begin && strcmp(line, "}") == 0) {
            snprintf(detail, sizeof detail, "%u lines", number - begin + 1);
            if (number - begin + 1 > MOST_FUNCTION_LINES)
                violate(check, path, begin, "function of ", detail);
            begin = 0;
        }
    }
    snprintf(detail, sizeof detail, "%u lines", number);
    if (number > MOST_FILE_LINES && !ends_with(path, ".def"))
        violate(check, path, number, "file of ", detail);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* `word` stands in the line with no letter, digit or underscore around it. */
static bool has_word(const char *line, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(line, word); at; at = strstr(at + 1, word))
        if ((at == line || !is_word(at[-1])) && !is_word(at[length]))
            return true;
    return false;
}

static void look_at_strategies(struct check *check, const char *path, const char *text)
{
    if (!starts_with(path, "codegen/strategy/"))
        return;
    char line[PATH_ROOM];
    for (unsigned number = 1; next_line(&text, line, sizeof line); number++)
        for (unsigned i = 0; i < check->name_count; i++) {
            char token[128], string[128];
            snprintf(token, sizeof token, "OP_%s", check->names[i]);
            snprintf(string, sizeof string, "\"%s\"", check->names[i]);
            if (has_word(line, token) || strstr(line, string))
                violate(check, path, number, "a strategy names the operator ", check->names[i]);
        }
}

static void look_at_sources(struct check *check, const char *path, const char *text)
{
    char line[1024];
    if (!ends_with(path, "CMakeLists.txt") && !ends_with(path, ".cmake"))
        return;
    for (unsigned number = 1; next_line(&text, line, sizeof line); number++)
        if (strstr(line, "file(GLOB") || strstr(line, "aux_source_directory"))
            violate(check, path, number, "sources must be listed: ", line);
}

static void look_at_words(struct check *check, const char *path, const char *text)
{
    /* In halves, so that this file does not name them. */
    static const char *const halves[][2] = {
        {"/wo", "rk/"},      {"/ro", "ot/"},         {"/ho", "me/"},       {"/tmp/", "bash"},
        {"pypi", ".org"},    {"python", "hosted"},   {"proxy.", "golang"}, {"registry", ".npm"},
        {"artifact", "ory"}, {"/usr/src/", "build"}, {"localhost", ":"}};
    char line[PATH_ROOM], word[64];
    for (unsigned number = 1; next_line(&text, line, sizeof line); number++)
        for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
            snprintf(word, sizeof word, "%s%s", halves[i][0], halves[i][1]);
            if (strstr(line, word))
                violate(check, path, number, "a machine's path or host: ", word);
        }
}

/* What is not source: hidden entries but .ci, build trees, caches. */
static bool is_skipped(const char *name, const char *path)
{
    return (name[0] == '.' && strcmp(name, ".ci") != 0 && strcmp(name, ".clang-format") != 0) ||
           starts_with(path, "build") || strcmp(name, "__pycache__") == 0;
}

/* `path` is relative to the root, "" for the root itself. */
static bool walk(struct check *check, const char *path, unsigned depth)
{
    char whole[PATH_ROOM], inner[PATH_ROOM];
    snprintf(whole, sizeof whole, "%s/%s", check->root, path);
    DIR *folder = depth < MOST_DEPTH ? opendir(whole) : NULL;
    if (!folder)
        return false;
    bool good = true;
    struct dirent *entry;
    while (good && (entry = readdir(folder)) != NULL) {
        struct stat status;
        snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "/" : "", entry->d_name);
        if (is_skipped(entry->d_name, inner) ||
            snprintf(whole, sizeof whole, "%s/%s", check->root, inner) >= PATH_ROOM ||
            lstat(whole, &status) != 0)
            continue;
        if (S_ISDIR(status.st_mode))
            good = walk(check, inner, depth + 1);
        char *text = S_ISREG(status.st_mode) ? read_text(whole) : NULL;
        if (text) {
            check->files++;
            check->look(check, inner, text);
        }
        free(text);
    }
    closedir(folder);
    return good;
}

/* The first argument of every OP( row. */
static bool read_operator_names(struct check *check)
{
    char path[PATH_ROOM], line[PATH_ROOM];
    snprintf(path, sizeof path, "%s/ir/ops.def", check->root);
    char *text = read_text(path);
    const char *at = text;
    while (text && next_line(&at, line, sizeof line) && check->name_count < MOST_NAMES) {
        if (!starts_with(line, "OP("))
            continue;
        const char *name = line + 3 + strspn(line + 3, " ");
        size_t length = strcspn(name, ", ");
        char *copy = length ? calloc(1, length + 1) : NULL;
        if (copy)
            check->names[check->name_count++] = memcpy(copy, name, length);
    }
    free(text);
    return check->name_count > 0;
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*look)(struct check *check, const char *path, const char *text);
    } checks[] = {{"arrows", look_at_arrows},
                  {"lengths", look_at_lengths},
                  {"strategies", look_at_strategies},
                  {"sources", look_at_sources},
                  {"words", look_at_words}};
    struct check check = {.root = count == 3 ? arguments[1] : NULL};
    for (size_t i = 0; check.root && i < sizeof checks / sizeof *checks; i++)
        if (strcmp(arguments[2], checks[i].name) == 0)
            check.look = checks[i].look;
    if (!check.look) {
        fprintf(stderr, "usage: check_tree ROOT arrows|lengths|strategies|sources|words\n");
        return 2;
    }
    bool good = (check.look != look_at_strategies || read_operator_names(&check)) && walk(&check, "", 0);
    for (unsigned i = 0; i < check.name_count; i++)
        free(check.names[i]);
    if (!good || !check.files) {
        fprintf(stderr, "check_tree: %s cannot be read as a source tree\n", check.root);
        return 2;
    }
    printf("%u files, %u violations\n", check.files, check.violations);
    return check.violations ? 1 : 0;
}
