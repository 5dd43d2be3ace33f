# gpucc_llvm: LLVM 19's C API with the back ends of the hosts, linked statically. Asked from llvm-config and not from LLVM's CMake
# package, which wants development files (libedit, libxml2, zstd's shared library) of parts that gpucc does not link.
find_program(GPUCC_LLVM_CONFIG NAMES llvm-config-19 llvm-config PATHS /usr/lib/llvm-19/bin
             DOC "llvm-config of LLVM 19")
if(NOT GPUCC_LLVM_CONFIG)
  message(FATAL_ERROR "LLVM 19 not found: install llvm-19-dev, or set GPUCC_LLVM_CONFIG to its llvm-config")
endif()

function(gpucc_llvm_ask result)
  execute_process(COMMAND ${GPUCC_LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_VARIABLE problem RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${GPUCC_LLVM_CONFIG} ${ARGN} failed: ${problem}")
  endif()
  separate_arguments(answer UNIX_COMMAND "${answer}")
  set(${result} ${answer} PARENT_SCOPE)
endfunction()

gpucc_llvm_ask(llvm_version --version)
if(NOT llvm_version MATCHES "^19\\.")
  message(FATAL_ERROR "LLVM 19 is needed; ${GPUCC_LLVM_CONFIG} is of version ${llvm_version}")
endif()
set(llvm_components core analysis bitwriter target passes x86codegen x86desc x86info aarch64codegen aarch64desc
                    aarch64info)
gpucc_llvm_ask(llvm_archives --link-static --libfiles ${llvm_components})
gpucc_llvm_ask(llvm_includes --includedir)
foreach(archive IN LISTS llvm_archives)
  if(NOT EXISTS ${archive})
    message(FATAL_ERROR "LLVM 19 is installed without its static libraries (${archive}): install llvm-19-dev")
  endif()
endforeach()

# What those archives need besides the C library: the compiler's C++ runtime and the two compression libraries.
foreach(library stdc++ z zstd)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=lib${library}.a OUTPUT_VARIABLE path
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT IS_ABSOLUTE "${path}" OR NOT EXISTS "${path}")
    message(FATAL_ERROR "lib${library}.a not found: LLVM's static libraries need it "
                        "(packages g++, zlib1g-dev, libzstd-dev)")
  endif()
  list(APPEND llvm_needs ${path})
endforeach()

add_library(gpucc_llvm INTERFACE)
target_include_directories(gpucc_llvm SYSTEM INTERFACE ${llvm_includes})
target_link_libraries(gpucc_llvm INTERFACE ${llvm_archives} ${llvm_needs} m dl pthread)
target_link_options(gpucc_llvm INTERFACE -static-libgcc)
message(STATUS "LLVM ${llvm_version}: ${GPUCC_LLVM_CONFIG}")
