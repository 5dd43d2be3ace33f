# gpucc_warnings: the warnings that every file of the project is clean under, with gcc and with clang.
add_library(gpucc_warnings INTERFACE)
target_compile_options(gpucc_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef
  $<$<BOOL:${GPUCC_WERROR}>:-Werror>)
