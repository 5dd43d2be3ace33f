# What bundles for AArch64 hosts need when gpucc is built: a compiler and a linker that are for every processor (clang and
# lld of LLVM 19), and the C library's headers. GPUCC_AARCH64 says whether all is there; gpucc refuses --host=aarch64 otherwise.
find_program(GPUCC_CLANG NAMES clang-19 clang PATHS /usr/lib/llvm-19/bin DOC "clang of LLVM 19: compiles the runtime of other hosts")
find_program(GPUCC_LLD NAMES ld.lld-19 ld.lld PATHS /usr/lib/llvm-19/bin DOC "lld of LLVM 19")
find_path(GPUCC_AARCH64_INCLUDE gnu/stubs-lp64.h PATHS /usr/aarch64-linux-gnu/include NO_DEFAULT_PATH
          DOC "Headers of the C library for AArch64")
if(GPUCC_CLANG AND GPUCC_LLD AND GPUCC_AARCH64_INCLUDE)
  set(GPUCC_AARCH64 ON)
  message(STATUS "AArch64 hosts: ${GPUCC_CLANG}, ${GPUCC_AARCH64_INCLUDE}")
else()
  set(GPUCC_AARCH64 OFF)
  message(STATUS "AArch64 hosts: none, gpucc will refuse --host=aarch64 (it needs clang-19, lld-19 and "
                 "libc6-dev-arm64-cross: scripts/setup)")
endif()

# Base Armv8-A, and nothing that needs a library beside the C library: atomics in place, and no stack protector, whose
# guard stands in the dynamic loader.
set(GPUCC_AARCH64_FLAGS --target=aarch64-linux-gnu -march=armv8-a -mno-outline-atomics -nostdlibinc
                        -isystem ${GPUCC_AARCH64_INCLUDE} -std=c11 -fPIC -fno-stack-protector)

# gpucc_aarch64_objects(<result> FOLDER <folder> SOURCES <file>... [FLAGS <flag>...] [DEFINITIONS <macro>...])
# Compiles C files of the project for AArch64; the objects' paths go into the variable.
function(gpucc_aarch64_objects result)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER" "SOURCES;FLAGS;DEFINITIONS")
  set(objects "")
  list(TRANSFORM arg_DEFINITIONS PREPEND -D)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    cmake_path(GET path STEM LAST_ONLY stem)
    set(object ${arg_FOLDER}/${stem}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${arg_FOLDER}
      COMMAND ${GPUCC_CLANG} ${GPUCC_AARCH64_FLAGS} ${arg_FLAGS} ${arg_DEFINITIONS}
              "$<TARGET_PROPERTY:gpucc_warnings,INTERFACE_COMPILE_OPTIONS>" -I${PROJECT_SOURCE_DIR}
              -I${PROJECT_SOURCE_DIR}/include -MD -MF ${object}.d -c ${path} -o ${object}
      DEPENDS ${path}
      DEPFILE ${object}.d
      COMMENT "Compiling ${stem}.c for AArch64"
      COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
