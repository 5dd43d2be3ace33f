/* Reads the ELF of a bundle and says what it asks of the system that loads it beyond what is promised:
 *
 *   - needs libc, libm, libdl, libpthread by soname and nothing else, every symbol with a version, none newer
 * than glibc 2.17; neither mmap nor mprotect among them, so no memory becomes executable later
 *   - exports gpucc_bundle_query and nothing else
 *   - RELRO over the dynamic section and the GOT, BIND_NOW, no text relocations
 *   - no executable stack, no segment that is writable and executable, no interpreter
 *   - neither RPATH nor RUNPATH
 *
 * A reader of its own, after the ELF and GNU symbol versioning specifications; shares nothing with the
 * writer. */
#ifndef GPUCC_TESTS_HARNESS_BUNDLE_ELF_H
#define GPUCC_TESTS_HARNESS_BUNDLE_ELF_H

#include <stdio.h>

/* Number of broken promises; each is a line in `report`: "PATH: what". A file that is no ELF file of ours is
 * one. */
unsigned bundle_elf_problems(const char *path, FILE *report);

#endif
