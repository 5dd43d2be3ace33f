/* check_bundle FILE...: tells what the ELF of each bundle asks of the system beyond what is promised
 * (tests/harness/bundle_elf.h). Exit status 1 when there is something. */
#include "tests/harness/bundle_elf.h"

int main(int count, char **paths)
{
    unsigned problems = 0;
    if (count < 2) {
        fprintf(stderr, "usage: check_bundle FILE...\n");
        return 2;
    }
    for (int i = 1; i < count; i++)
        problems += bundle_elf_problems(paths[i], stdout);
    printf("%d files, %u problems\n", count - 1, problems);
    return problems ? 1 : 0;
}
