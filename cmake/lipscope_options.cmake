# SPDX-License-Identifier: Apache-2.0
# Flags of our own code, as interface targets.
# -Wno-restrict, -Wno-maybe-uninitialized: g++ 12 warns wrongly about std::string operator+ (GCC bug
# 105651) and about optionals and variants at -O3.
# -Wno-missing-field-initializers: designated initialisers leave out what has a default.
# -ffp-contract=off: outward arithmetic needs every operation rounded on its own.
add_library(lipscope_flags INTERFACE)
target_compile_options(lipscope_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Wno-restrict -Wno-maybe-uninitialized -Wno-missing-field-initializers -ffp-contract=off -fno-math-errno)
target_include_directories(lipscope_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
if(LIPSCOPE_SANITIZE)
  target_compile_options(lipscope_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(lipscope_flags INTERFACE -fsanitize=address,undefined)
endif()
