# gpucc_options: what every target of the project is compiled with.
# gpucc_library(): one folder's static library.
add_library(gpucc_options INTERFACE)
target_include_directories(gpucc_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include
                                                   ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(gpucc_options INTERFACE GPUCC_VERIFY=$<BOOL:${GPUCC_VERIFY}>
                                                   GPUCC_VERSION="${PROJECT_VERSION}")
# Executors must round at the same places: an fma is one only where the source says so.
target_compile_options(gpucc_options INTERFACE
  -ffp-contract=off -fstack-protector-strong
  $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>
  $<$<CONFIG:Release>:-ffunction-sections> $<$<CONFIG:Release>:-fdata-sections>)
target_link_options(gpucc_options INTERFACE
  -Wl,-z,relro -Wl,-z,now $<$<CONFIG:Release>:-Wl,--gc-sections>)
target_link_libraries(gpucc_options INTERFACE gpucc_warnings gpucc_sanitizers)

# gpucc_library(<target> SOURCES <file>... [PUBLIC <library>...] [PRIVATE <library>...] [DEFINITIONS <macro>...])
# Without sources the target exists all the same, as an empty interface.
function(gpucc_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE;DEFINITIONS")
  gpucc_present_sources(arg_SOURCES ${arg_SOURCES})
  if(NOT arg_SOURCES)
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_PUBLIC})
    return()
  endif()
  add_library(${target} STATIC ${arg_SOURCES})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE gpucc_options ${arg_PRIVATE})
endfunction()

# Names listed files that are not there: an error where warnings are errors; else they are left out, so that the rest of
# a tree in the middle of a change still builds.
function(gpucc_present_sources result)
  set(present "")
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    get_source_file_property(generated ${path} GENERATED)
    if(generated OR EXISTS ${path})
      list(APPEND present ${source})
    else()
      set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
      if(GPUCC_WERROR)
        message(SEND_ERROR "${path} is listed but missing")
      else()
        message(WARNING "${path} is listed but missing")
      endif()
    endif()
  endforeach()
  set(${result} ${present} PARENT_SCOPE)
endfunction()
