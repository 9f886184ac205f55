# SPDX-License-Identifier: Apache-2.0
# lipscope_registry(<target> <kind> <type> <header> <name>...)
# Generates
#   std::vector<type> make_<kind>_table()
# that joins what the functions `std::vector<type> <kind>_<name>()` give, in the order of the list.
function(lipscope_registry target kind type header)
  set(decls "")
  set(rows "")
  foreach(name IN LISTS ARGN)
    string(APPEND decls "std::vector<${type}> ${kind}_${name}();\n")
    string(APPEND rows "  for (auto& row : ${kind}_${name}()) table.push_back(row);\n")
  endforeach()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/generated/${kind}_table.cpp)
  file(CONFIGURE OUTPUT ${out} CONTENT
"#include <vector>
#include \"${header}\"
namespace lipscope {
@decls@
std::vector<${type}> make_${kind}_table() {
  std::vector<${type}> table;
@rows@  return table;
}
}
" @ONLY)
  target_sources(${target} PRIVATE ${out})
endfunction()
