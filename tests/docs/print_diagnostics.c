/* docs/diagnostics.md, from ir/support/diag.def, on standard output. */
#include "ir/support/diag.h"

#include <stdio.h>

static const struct {
    unsigned from; /* first number */
    const char *title;
} sections[] = {
    {100, "Files"},
    {200, "The model"},
    {300, "Types and shapes"},
    {400, "What is not supported"},
    {500, "Targets, tools and options"},
    {600, "Bundles"},
    {700, "At run time"},
    {900, "gpucc itself"},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static const char introduction[] =
    "# Diagnostics\n"
    "\n"
    "Made from `ir/support/diag.def` by `tests/docs/generated.py --update`.\n"
    "\n"
    "What is wrong with a model, a file or the machine is said in one line a problem, on standard error:\n"
    "\n"
    "```\n"
    "model.onnx: error E0302: node \"/enc/0/MatMul\" (#42, MatMul, opset 17): the inputs' inner dims are 64 "
    "and 9, must be "
    "equal\n"
    "```\n"
    "\n"
    "file, code, the node's name, number, operator and opset where it is about one node, the problem. All "
    "problems of a\n"
    "stage are reported in one run; bytes of names that are not printable are escaped. The exit status is "
    "that of the\n"
    "first problem:\n"
    "\n"
    "| status | means |\n"
    "|---|---|\n"
    "| 0 | done |\n"
    "| 1 | the model or another input is invalid or not supported |\n"
    "| 2 | wrong use of the command line |\n"
    "| 3 | the machine lacks something: a GPU, a compiler, a linker, memory, room on the disk |\n"
    "| 4 | a defect of gpucc or of a driver |\n"
    "\n"
    "A command that fails leaves no file behind, and leaves a file that was there before as it was.\n";

int main(void)
{
    size_t section = 0;
    fputs(introduction, stdout);
    for (uint32_t i = 0; diag_row(i); i++) {
        const struct diag_row *row = diag_row(i);
        if (section < SECTIONS && row->number >= sections[section].from) {
            while (section + 1 < SECTIONS && row->number >= sections[section + 1].from)
                section++;
            printf("\n## %s\n\n| code | name | status | meaning | what to do |\n|---|---|---|---|---|\n",
                   sections[section++].title);
        }
        printf("| E%04u | %s | %d | %s | %s |\n", row->number, row->name, row->status, row->meaning,
               row->remedy);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
