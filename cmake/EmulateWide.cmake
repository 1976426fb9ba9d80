# The AVX-512 and AMX kernels on a machine that has neither: their units are compiled for AVX2 over a stand-in for their
# instructions, and dispatch is told that the processor has them. For tests; nothing it times means anything.
set(stand_in ${PROJECT_SOURCE_DIR}/tests/emulation)
set(flags ${avx2} -Wno-psabi -include ${stand_in}/wide_instructions.h)
foreach(unit avx512 avx512_vnni avx512_bf16 amx)
  set_source_files_properties(device/cpu/kernels_${unit}.cc TARGET_DIRECTORY latte_device_cpu PROPERTIES COMPILE_OPTIONS "${flags}")
endforeach()
set_source_files_properties(device/cpu/dispatch.cc TARGET_DIRECTORY latte_device_cpu PROPERTIES COMPILE_OPTIONS
                            "-D__builtin_cpu_supports(feature)=true")
set_source_files_properties(device/cpu/amx_permission.cc TARGET_DIRECTORY latte_device_cpu PROPERTIES HEADER_FILE_ONLY ON)
target_sources(latte_device_cpu PRIVATE ${stand_in}/amx_permission.cc)
