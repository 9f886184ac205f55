# SPDX-License-Identifier: Apache-2.0
# Flags of our own code, as interface targets.
# -Wno-restrict, -Wno-maybe-uninitialized, -Wno-free-nonheap-object: g++ 12 warns wrongly about std::string operator+ (GCC bug
# 105651) and about optionals and variants at -O3.
# -Wno-missing-field-initializers: designated initialisers leave out what has a default.
# -ffp-contract=off: outward arithmetic needs every operation rounded on its own.
# -Wno-subobject-linkage: a file compiled in a batch looks like a header, where this would be a fault.
add_library(lipscope_flags INTERFACE)
target_compile_options(lipscope_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Wno-restrict -Wno-maybe-uninitialized -Wno-free-nonheap-object -Wno-missing-field-initializers -Wno-subobject-linkage -ffp-contract=off -fno-math-errno)
target_include_directories(lipscope_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
# Of the undefined-behaviour checks those that bad input can trip; the pointer checks are the address
# sanitizer's and would triple the time to compile.
if(LIPSCOPE_SANITIZE STREQUAL "thread")
  target_compile_options(lipscope_flags INTERFACE -fsanitize=thread)
  target_link_options(lipscope_flags INTERFACE -fsanitize=thread)
elseif(LIPSCOPE_SANITIZE)
  set(sanitizers
    address,signed-integer-overflow,shift,integer-divide-by-zero,float-cast-overflow,bounds,enum,bool,unreachable,return)
  target_compile_options(lipscope_flags INTERFACE
    -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(lipscope_flags INTERFACE -fsanitize=${sanitizers})
endif()

# For what is installed: the library and the program. Sanitizers do better without.
add_library(lipscope_hardening INTERFACE)
if(LIPSCOPE_HARDENING AND NOT LIPSCOPE_SANITIZE)
  target_compile_options(lipscope_hardening INTERFACE
    -fstack-protector-strong
    $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>  # needs optimisation
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:POSITION_INDEPENDENT_CODE>>>:-fPIE>)
  target_link_options(lipscope_hardening INTERFACE -pie -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
