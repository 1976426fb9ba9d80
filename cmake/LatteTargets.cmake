# One place for compiler flags and for the shape of a target: a folder is a library, its tests are one program.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)

# How everything here is compiled. It does not reach programs that only use the library.
add_library(latte_options INTERFACE)
target_compile_options(latte_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                               -ffp-contract=off -fno-math-errno)
# g++ 12 sees overlaps that are not there in `"text" + std::string` (GCC bug 105651).
target_compile_options(latte_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(LATTE_WERROR)
  target_compile_options(latte_options INTERFACE -Werror)
endif()
if(LATTE_SANITIZE)
  target_compile_options(latte_options INTERFACE -fsanitize=${LATTE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(latte_options INTERFACE -fsanitize=${LATTE_SANITIZE})
  if(LATTE_SANITIZE MATCHES "undefined")
    target_compile_options(latte_options INTERFACE -fno-sanitize-recover=all)
  endif()
endif()
if(LATTE_FUZZ)
  target_compile_options(latte_options INTERFACE -fsanitize=fuzzer-no-link,address)
  target_link_options(latte_options INTERFACE -fsanitize=address)
endif()

# What the folders of src/ see besides.
add_library(latte_flags INTERFACE)
target_include_directories(latte_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(latte_flags INTERFACE latte_options Threads::Threads fmt::fmt)

# Compiles several files of a target as one, since headers are most of the work. What one file says of itself (an
# anonymous namespace, a using) then meets its neighbours: CI compiles each file alone, too.
function(latte_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LATTE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  # A local name may be another file's constant, and what a file keeps for itself is the batch's, too.
  set_target_properties(${target} PROPERTIES UNITY_BUILD_CODE_BEFORE_INCLUDE
    "#pragma GCC diagnostic ignored \"-Wshadow\"\n#pragma GCC diagnostic ignored \"-Wsubobject-linkage\"")
endfunction()

# latte_folder(plan DEPENDS base): src/plan/*.cc as library latte_plan. A folder without sources is headers only.
function(latte_folder name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  string(REPLACE "/" "_" target ${name})
  set(globs ${name}/*.cc)
  if(name STREQUAL "model")
    list(APPEND globs model/families/*.cc)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${globs})
  if(sources)
    add_library(latte_${target} STATIC ${sources})
    set_property(GLOBAL APPEND PROPERTY LATTE_FOLDERS latte_${target})
    latte_unity(latte_${target})
    set(kind PUBLIC)
  else()
    add_library(latte_${target} INTERFACE)
    set(kind INTERFACE)
  endif()
  target_link_libraries(latte_${target} ${kind} latte_flags ${ARG_LINK})
  foreach(dependency ${ARG_DEPENDS})
    string(REPLACE "/" "_" dependency ${dependency})
    target_link_libraries(latte_${target} ${kind} latte_${dependency})
  endforeach()
endfunction()
