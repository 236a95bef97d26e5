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
# Exported to programs that use the library.  With this flag a function with a large frame touches
# each page of it, so it cannot step over the guard of a threadlet's stack.
set(WEFT_RECOMMENDED
  $<$<COMPILE_LANG_AND_ID:C,GNU,Clang>:-fstack-clash-protection>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-fstack-clash-protection>)
# Clear structs with plain stores: gcc's default, `rep stos`, costs more than most of the work that
# is done with them.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND WEFT_HARDENING -mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign)
endif()
# Do not read two separately written words with one vector load: store forwarding would fail, and
# the CPU would wait until both stores reach the cache.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND WEFT_HARDENING -fno-tree-slp-vectorize)
endif()
# No program replaces a function of the libraries, so their own calls may be inlined and need no
# jump through a table.
list(APPEND WEFT_HARDENING -fno-semantic-interposition)
set(WEFT_LINK_FLAGS -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs)
if(WEFT_SANITIZE)
  list(REMOVE_ITEM WEFT_LINK_FLAGS -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs)
endif()
# The libraries stay loaded after dlclose(): threads, loops and the system hold pointers into them.
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
