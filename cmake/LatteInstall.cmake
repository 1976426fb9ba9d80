# What `cmake --install` puts in place: the program, one archive of the whole library with its headers, what find_package and
# pkg-config read, the manual page and the completions.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The folders are libraries of their own; programs elsewhere get one.
get_property(folders GLOBAL PROPERTY LATTE_FOLDERS)
add_library(latte_archive STATIC)
foreach(folder ${folders})
  target_sources(latte_archive PRIVATE $<TARGET_OBJECTS:${folder}>)
endforeach()
set_target_properties(latte_archive PROPERTIES OUTPUT_NAME latte EXPORT_NAME latte LINKER_LANGUAGE CXX)
target_include_directories(latte_archive INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(latte_archive INTERFACE cxx_std_20)
target_link_libraries(latte_archive INTERFACE Threads::Threads fmt::fmt PkgConfig::pcre2 PkgConfig::utf8proc PkgConfig::xxhash
                      PkgConfig::sentencepiece)

install(TARGETS latte RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS latte_archive EXPORT latte ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/latte DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/latte)
install(EXPORT latte NAMESPACE latte:: FILE latteTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/latteConfig.cmake.in ${PROJECT_BINARY_DIR}/package/latteConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/latteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/latteConfig.cmake ${PROJECT_BINARY_DIR}/package/latteConfigVersion.cmake
        DESTINATION ${package_dir})
configure_file(${PROJECT_SOURCE_DIR}/cmake/latte.pc.in ${PROJECT_BINARY_DIR}/package/latte.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/latte.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The program prints these itself; a cross build without an emulator cannot ask it.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  set(pages)
  foreach(page "man;latte.1" "completion bash;latte" "completion zsh;_latte" "completion fish;latte.fish")
    list(GET page 0 words)
    list(GET page 1 file)
    separate_arguments(words)
    add_custom_command(OUTPUT package/${file} COMMAND latte ${words} > ${PROJECT_BINARY_DIR}/package/${file} DEPENDS latte
                       WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    list(APPEND pages ${PROJECT_BINARY_DIR}/package/${file})
  endforeach()
  add_custom_target(latte_pages ALL DEPENDS ${pages})
  list(GET pages 0 manual)
  list(GET pages 1 bash)
  list(GET pages 2 zsh)
  list(GET pages 3 fish)
  install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${fish} DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
