# gpucc_protobuf_c: protobuf-c, linked statically. gpucc_protobuf_c_generate(): the C form of a .proto file.
find_path(GPUCC_PROTOBUF_C_INCLUDE protobuf-c/protobuf-c.h DOC "Folder of protobuf-c/protobuf-c.h")
find_library(GPUCC_PROTOBUF_C_LIBRARY NAMES libprotobuf-c.a DOC "protobuf-c, static")
find_program(GPUCC_PROTOC_C NAMES protoc-c DOC "protobuf-c's compiler")
if(NOT GPUCC_PROTOBUF_C_INCLUDE OR NOT GPUCC_PROTOBUF_C_LIBRARY)
  message(FATAL_ERROR "protobuf-c not found: install libprotobuf-c-dev")
endif()
if(NOT GPUCC_PROTOC_C)
  message(FATAL_ERROR "protoc-c not found: install protobuf-c-compiler")
endif()

add_library(gpucc_protobuf_c INTERFACE)
target_include_directories(gpucc_protobuf_c SYSTEM INTERFACE ${GPUCC_PROTOBUF_C_INCLUDE})
target_link_libraries(gpucc_protobuf_c INTERFACE ${GPUCC_PROTOBUF_C_LIBRARY})

# gpucc_protobuf_c_generate(<target> <file.proto relative to the root>): an object library of the generated code,
# whose header is included as "<file>.pb-c.h". It is not ours, so it is compiled without our warnings.
function(gpucc_protobuf_c_generate target proto)
  set(folder ${PROJECT_BINARY_DIR}/generated)
  string(REGEX REPLACE "\\.proto$" ".pb-c" stem ${folder}/${proto})
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${stem}.c ${stem}.h
    COMMAND ${GPUCC_PROTOC_C} --proto_path=${PROJECT_SOURCE_DIR} --c_out=${folder} ${proto}
    DEPENDS ${PROJECT_SOURCE_DIR}/${proto}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMENT "Generating C from ${proto}"
    VERBATIM)
  add_library(${target} STATIC ${stem}.c ${stem}.h)
  target_compile_options(${target} PRIVATE -w)
  target_include_directories(${target} SYSTEM PUBLIC ${folder})
  target_link_libraries(${target} PUBLIC gpucc_protobuf_c PRIVATE gpucc_sanitizers)
endfunction()
