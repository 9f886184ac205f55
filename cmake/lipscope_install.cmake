# SPDX-License-Identifier: Apache-2.0
# cmake --install: program, library, headers and the package for find_package(lipscope).
include(CMakePackageConfigHelpers)
install(TARGETS lipscope EXPORT lipscopeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS lipscope_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/lipscope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lipscope)
install(EXPORT lipscopeTargets NAMESPACE lipscope:: DESTINATION ${package_dir})
configure_package_config_file(cmake/lipscopeConfig.cmake.in lipscopeConfig.cmake INSTALL_DESTINATION ${package_dir})
# While the major version is 0, compatibility is by minor version.
write_basic_package_version_file(lipscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lipscopeConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/lipscopeConfigVersion.cmake DESTINATION ${package_dir})
