/* Reads dumps of the Graph IR (gpucc --dump-ir) on standard input: each graph of it must parse, and print as
 * the text that was read. Prints how many there were. */
#include "ir/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(void)
{
    size_t used = 0, room = 1 << 16, part;
    char *text = malloc(room);
    while (text && (part = fread(text + used, 1, room - used - 1, stdin)) > 0) {
        used += part;
        if (room - used < 2) {
            char *larger = realloc(text, room *= 2);
            if (!larger)
                free(text);
            text = larger;
        }
    }
    if (text)
        text[used] = '\0';
    return text;
}

/* False: said on standard error. */
static bool check_graph(const char *text)
{
    struct arena arena;
    struct recovery recovery;
    struct diagnostics diagnostics;
    struct graph *graph;
    struct text again;
    if (setjmp(recovery.jump) != 0)
        return false;
    arena_init(&arena, &system_allocator, &recovery);
    diagnostics_init(&diagnostics, &arena, "dump");
    bool good = graph_parse(&arena, &diagnostics, text, NULL, &graph);
    if (!good)
        fprintf(stderr, "%s\n%s", diagnostics.items.items[0].message, text);
    if (good) {
        text_init(&again, &arena);
        graph_print(graph, false, &again);
        good = strcmp(again.data, text) == 0;
        if (!good)
            fprintf(stderr, "read:\n%sprinted again:\n%s", text, again.data);
    }
    arena_release(&arena);
    return good;
}

int main(void)
{
    static const char end[] = "\n}\n";
    char *text = read_all();
    unsigned graphs = 0;
    bool good = text != NULL;
    for (char *at = text ? strstr(text, "model ") : NULL; at && good; graphs++) {
        char *behind = strstr(at, end);
        if (!behind)
            break;
        behind += strlen(end);
        char kept = *behind;
        *behind = '\0';
        good = check_graph(at);
        *behind = kept;
        at = strstr(behind, "model ");
    }
    free(text);
    printf("%u graphs\n", graphs);
    return good ? 0 : 1;
}
