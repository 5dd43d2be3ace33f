# gpucc_embed_files(<sources variable> SYMBOL <name> BASE <folder> FILES <file>...)
#
# Makes a C file with the array `const struct embedded_file <name>[]` (ir/support/embedded.h): the files' bytes under
# their paths relative to BASE, in the order given, a NULL name behind the last. The C file is appended to the variable.
function(gpucc_embed_files sources)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SYMBOL;BASE" "FILES")
  set(output ${PROJECT_BINARY_DIR}/generated/embedded/${arg_SYMBOL}.c)
  set(paths "")
  foreach(file IN LISTS arg_FILES)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    list(APPEND paths ${path})
  endforeach()
  cmake_path(ABSOLUTE_PATH arg_BASE BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE base)
  # A list cannot travel through a command line with its semicolons; bars do not occur in our file names.
  list(JOIN paths "|" joined)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${output} -D SYMBOL=${arg_SYMBOL} -D BASE=${base} -D "FILES=${joined}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    COMMENT "Embedding ${arg_SYMBOL}"
    VERBATIM)
  set_source_files_properties(${output} PROPERTIES GENERATED TRUE)
  set(${sources} ${${sources}} ${output} PARENT_SCOPE)
endfunction()
