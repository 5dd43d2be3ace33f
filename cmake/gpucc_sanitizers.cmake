# gpucc_sanitizers: what GPUCC_SANITIZE asks for; empty otherwise. Any finding ends the program.
add_library(gpucc_sanitizers INTERFACE)
if(GPUCC_SANITIZE)
  target_compile_options(gpucc_sanitizers INTERFACE
    -fsanitize=${GPUCC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(gpucc_sanitizers INTERFACE -fsanitize=${GPUCC_SANITIZE})
endif()
