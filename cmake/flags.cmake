# How every target of the library and its tests is compiled.

set(WEFT_WARNINGS -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wvla -Wundef -Wwrite-strings)
set(WEFT_HARDENING -fno-strict-aliasing -fno-omit-frame-pointer
  -fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64")
  list(APPEND WEFT_HARDENING -fcf-protection=branch)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
  list(APPEND WEFT_HARDENING -mbranch-protection=standard)
endif()
# Exported to programs that use the library: a function with a large frame then touches
# each page of it, and cannot step over the guard of a threadlet's stack.
set(WEFT_RECOMMENDED
  $<$<COMPILE_LANG_AND_ID:C,GNU,Clang>:-fstack-clash-protection>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-fstack-clash-protection>)
# Structs are cleared by plain stores: `rep stos`, gcc's choice, costs more than what is
# done with most of them.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND WEFT_HARDENING -mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign)
endif()
# Two words that were written one after the other are not read as one: the CPU would wait
# until both have left for the cache.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND WEFT_HARDENING -fno-tree-slp-vectorize)
endif()
set(WEFT_LINK_FLAGS -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs)
if(WEFT_SANITIZE)
  list(REMOVE_ITEM WEFT_LINK_FLAGS -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs)
endif()
# The libraries stay loaded: what they have given to threads, loops and the system points
# into them.
list(APPEND WEFT_LINK_FLAGS -Wl,-z,nodelete)

function(weft_compile target)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_EXTENSIONS ON
    C_STANDARD_REQUIRED ON C_VISIBILITY_PRESET hidden)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:C>:${WEFT_WARNINGS}> ${WEFT_HARDENING}
    $<$<CONFIG:Release>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>
    $<$<BOOL:${WEFT_WERROR}>:-Werror>)
  if(WEFT_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${WEFT_SANITIZE}
      -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${WEFT_SANITIZE})
  endif()
  if(WEFT_COVERAGE)
    target_compile_options(${target} PUBLIC --coverage -O0)
    target_link_options(${target} PUBLIC --coverage)
  endif()
endfunction()
